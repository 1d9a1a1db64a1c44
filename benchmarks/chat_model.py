"""A tiny untrained model with what published ones have: BPE, chat template, two end tokens."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from reference_trainer.workflows.prompts import load_prompts

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")
TEMPLATE = """{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and enable_thinking is false %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}"""


def make_tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    texts = [text for forms in load_prompts("chat-math").forms.values() for text in forms.values()]
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    raw.add_tokens(list(THINK))
    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def make_chat_model(folder: Path, *, shape: Mapping[str, Any] | None = None) -> Path:
    """Save one in ``folder`` as a snapshot of the hub; ``shape`` overrides its sizes."""
    tokenizer = make_tokenizer()
    ends = [tokenizer.convert_tokens_to_ids(token) for token in ("<|im_end|>", "<|endoftext|>")]
    torch.manual_seed(0)
    sizes = {
        # As published: ids beyond the tokenizer's can be sampled, and there is no padding token.
        "vocab_size": len(tokenizer) + 5,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "intermediate_size": 128,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "tie_word_embeddings": True,
        "max_position_embeddings": 2048,
        "initializer_range": 0.1,
    }
    config = Qwen3Config(
        **(sizes | dict(shape or {})),
        bos_token_id=ends[1],
        eos_token_id=ends[0],
        pad_token_id=None,
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config = GenerationConfig(
        eos_token_id=ends, do_sample=True, top_k=20, top_p=0.8, temperature=0.6
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
