"""Watch the roles of a TRL GRPO run: one callback, a dataset with a column ``role``.

It runs in seconds on a CPU and needs no network: model and tokenizer are made here, untrained.
With a real model only ``tiny_model``, ``tiny_tokenizer``, the dataset and the reward change.

The generator is paid for a 4 anywhere in its text, and a longer text holds one more often.
roledrift says so after a few steps: "The generator has been paid for length".

    pip install -e ".[trl]"    # in a clone of the repository
    python examples/trl_grpo_roles.py --out runs/trl_roles
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    TrainerCallback,
)
from trl import GRPOConfig, GRPOTrainer

from roledrift import RoleDriftCallback

WORDS = ["<pad>", "<eos>", "<unk>", "solve", "pick", "1", "2", "3", "4", "+", "=", "so"]


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def tiny_model() -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        pad_token_id=0,
        eos_token_id=1,
    )
    return Qwen3ForCausalLM(config)


def dataset() -> Dataset:
    """Each problem twice: as the generator sees it and as the aggregator sees it."""
    rows = []
    for a in "123":
        for b in "123":
            rows.append({"prompt": f"solve {a} + {b} =", "role": "generator"})
            rows.append({"prompt": f"pick {a} {b} =", "role": "aggregator"})
    return Dataset.from_list(rows)


def reward(completions: list[str], role: list[str], **_: object) -> list[float]:
    """Generators are paid for an answer, aggregators for a short one."""
    return [
        float("4" in text) if name == "generator" else -float(len(text.split()))
        for text, name in zip(completions, role, strict=True)
    ]


def trainer(out: Path, steps: int, callbacks: list[TrainerCallback]) -> GRPOTrainer:
    """A GRPO training of two roles on little sums."""
    return GRPOTrainer(
        model=tiny_model(),
        processing_class=tiny_tokenizer(),
        reward_funcs=reward,
        train_dataset=dataset(),
        peft_config=LoraConfig(r=8, target_modules="all-linear"),
        args=GRPOConfig(
            output_dir=str(out),
            per_device_train_batch_size=16,
            gradient_accumulation_steps=2,
            num_generations=8,
            max_completion_length=16,
            learning_rate=1e-2,
            max_steps=steps,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            bf16=False,
            disable_tqdm=True,
        ),
        callbacks=callbacks,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path("runs/trl_roles"))
    parser.add_argument("--steps", type=int, default=12)
    asked = parser.parse_args()

    # All that roledrift needs. config={"stop_on": ["length_inflation"]} would also let it end the
    # run when the answers of the aggregator have grown.
    watch = RoleDriftCallback("voting", task="sums")
    trainer(asked.out, asked.steps, [watch]).train()  # says at its end how to see the run


if __name__ == "__main__":
    main()
