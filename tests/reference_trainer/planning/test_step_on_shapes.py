import json
from dataclasses import replace

import pytest
from transformers import LlamaConfig, PretrainedConfig, Qwen2Config

from reference_trainer.grid import load_source
from reference_trainer.planning.shapes import sizes, trained
from reference_trainer.planning.step_on_shapes import MicroShape, Trained, operations, step_cost
from reference_trainer.scoring import MOST_LOGITS

CONFIG = load_source("paper/voting-ip-math-0.6B", {})


def test_a_forward_takes_two_operations_per_weight_and_token() -> None:
    """The known rule of thumb; attention and the adapters come on top."""
    size, tokens, outputs = sizes(CONFIG), 3000, 500
    forward, backward = operations(trained(CONFIG), tokens, outputs)
    linear = 2 * (size.mapped + size.adapter) * tokens
    # Of every pair of tokens a causal model computes half: q k^T and the sum of v, 28 layers of
    # 16 heads of 128.
    pairs = 28 * 2 * 2 * 16 * 128 / 2 * tokens**2
    head = 2 * size.tied * outputs
    assert forward == pytest.approx(linear + pairs + head)
    # Frozen weights have no gradient of their own: the backward is one forward, one more to compute
    # activations again, and the adapters' gradients. Attention's backward has five products to two.
    plain = replace(trained(CONFIG), checkpointing=False)
    once = operations(plain, tokens, outputs)[1]
    assert backward - once == pytest.approx(linear + pairs, rel=0.01)
    assert once == pytest.approx(linear + 2 * size.adapter * tokens + 2.5 * pairs + head, rel=0.02)


def test_checkpointing_stores_the_layers_inputs_alone() -> None:
    shape = MicroShape(sequences=1, tokens=4096, outputs=1024)
    cost = step_cost(trained(CONFIG), shape)
    inputs = 28 * 4096 * 1024 * 2
    assert inputs <= cost.stored <= 1.2 * inputs
    plain = step_cost(replace(trained(CONFIG), checkpointing=False), shape)
    assert plain.stored > 20 * cost.stored
    assert cost.layer > 3 * plain.layer


def test_rows_that_a_mask_keeps_apart_need_one_for_all_pairs_of_tokens() -> None:
    apart = step_cost(trained(CONFIG), MicroShape(1, 8192, 1024, masked=True))
    plain = step_cost(trained(CONFIG), MicroShape(1, 8192, 1024))
    assert apart.peak - plain.peak >= 8192**2 * 2


@pytest.mark.parametrize("kind", [LlamaConfig, Qwen2Config])  # without and with `layer_types`
def test_the_mask_of_any_architecture_is_counted(kind: type[PretrainedConfig]) -> None:
    small = kind(
        vocab_size=100,
        hidden_size=32,
        num_hidden_layers=2,
        intermediate_size=64,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    model = Trained(json.dumps(small.to_diff_dict()), "float32", 2, "sdpa", checkpointing=False)
    plain = step_cost(model, MicroShape(1, 1024, 8))
    assert step_cost(model, MicroShape(1, 1024, 8, masked=True)).stored > plain.stored + 1024**2


def test_a_forward_without_gradients_stores_nothing() -> None:
    cost = step_cost(trained(CONFIG), MicroShape(1, 4096, 1024, gradients=False))
    assert (cost.stored, cost.backward) == (0, 0)
    full = step_cost(trained(CONFIG), MicroShape(1, 4096, 1024))
    assert 0 < cost.peak < full.peak
    assert cost.forward == full.forward


def test_many_outputs_are_scored_a_chunk_at_a_time() -> None:
    """What is extrapolated is what was run."""
    chunk = MOST_LOGITS // 151_936
    model = trained(CONFIG)
    few, more, many = (step_cost(model, MicroShape(1, 8192, n * chunk)) for n in (1, 4, 40))
    assert many.head < 1.2 * few.head
    per_chunk = (more.forward - few.forward) / 3
    assert many.forward - more.forward == pytest.approx(36 * per_chunk)
