"""A small multi-LoRA GRPO trainer for multi-role LLM workflows.

It exists to exercise ``roledrift`` end to end on a laptop: real transformers models, real PEFT
adapters, real sampling, only tiny. Run it with ``python -m reference_trainer``.
"""
