from collections.abc import Callable

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from reference_trainer.grid import Cell
from reference_trainer.paper_scale import SHAPES, Shape, estimate, lengths, policies
from reference_trainer.policies import AdapterBank
from reference_trainer.tiny_model import build_config


@pytest.mark.parametrize("scale", ["0.6B", "1.7B", "4B"])
def test_weights_are_those_of_the_real_architecture(scale: str) -> None:
    shape = SHAPES[scale]
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        intermediate_size=shape.feed_forward,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = Qwen3ForCausalLM(config)
    assert shape.parameters == model.num_parameters()


def test_adapters_are_those_of_peft(make_bank: Callable[..., AdapterBank]) -> None:
    tiny = build_config("S")
    shape = Shape(
        tiny.hidden_size,
        tiny.num_hidden_layers,
        tiny.intermediate_size,
        tiny.num_attention_heads,
        tiny.num_key_value_heads,
        tiny.head_dim,
        tiny.vocab_size,
    )
    bank = make_bank("shared")  # rank 4
    assert shape.lora(4) == sum(one.numel() for one in bank.parameters_of("shared"))


def test_memory_by_hand() -> None:
    cell = Cell("voting", "ip", "code", "0.6B")
    assert policies(cell) == 2
    assert policies(Cell("single", "sa", "code", "0.6B")) == 1
    assert policies(Cell("orch_workers", "ip", "math", "4B")) == 3
    memory = estimate(cell, rank=64, sequences=1)
    assert memory.weights == 4 * 596_049_920
    # Keys and values, 28 layers of 8 heads of 128, 2 bytes, 10240 + 2048 tokens.
    assert memory.cache == 2 * 28 * 8 * 128 * 2 * 12_288
    adapter = 28 * 64 * (3072 + 2 * 2048 + 3072 + 3 * 4096)
    assert memory.adapters == 6 * 2 * adapter
    assert memory.optimizer == 4 * adapter + 8 * 2 * adapter
    layer = 2048 + 1024 + 1024 + 1024 + 3072 + 3072 + 1024 + 2 * 1024
    logits = 8 * 2048 * 151_936
    assert memory.activations == 2 * 12_288 * (28 * 1024 + layer) + logits


def test_lengths() -> None:
    assert lengths(Cell("eval_opt", "sp", "math", "4B")).prompt == 30_720
    assert lengths(Cell("orch_workers", "sp", "math", "4B")).prompt == 20_480
    assert lengths(Cell("single", "sa", "code", "4B")).prompt == 4096
    assert lengths(Cell("eval_opt", "sp", "code", "4B")).rounds == 2
