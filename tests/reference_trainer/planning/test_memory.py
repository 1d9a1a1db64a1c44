from pathlib import Path
from typing import Any

import pytest

from benchmarks.plan_memory import case, measured, planned
from reference_trainer.grid import load_source
from reference_trainer.planning.gpu import GIB, Gpu, memory_of
from reference_trainer.planning.memory import largest_micro_batch, memory
from reference_trainer.planning.shapes import sizes

H100 = Gpu(memory_of("80GB"))


@pytest.mark.parametrize(
    "settings",
    [
        {"train": {"microbatch": 2, "packed": True}},
        {"train": {"microbatch": 2}, "model": {"gradient_checkpointing": True}},
    ],
    ids=["packed", "padded and checkpointed"],
)
def test_the_plan_is_what_an_update_allocates(tmp_path: Path, settings: dict[str, Any]) -> None:
    config = case(tmp_path, settings, tokens=96)
    assert planned(config) == pytest.approx(measured(config), rel=0.1)


def test_parts_by_hand() -> None:
    config = load_source("paper/voting-ip-math-1.7B", {})
    needed, size = memory(config, H100), sizes(config)
    update = needed.parts["update"]
    assert update["base weights"] == 2 * size.base
    assert update["adapters"] == 4 * 2 * size.adapter
    assert update["moments of the optimizer"] == 2 * 4 * 2 * size.adapter
    assert update["gradients"] == 4 * size.adapter
    assert update["engine"] == int(0.45 * 80 * GIB)
    # What is left of the engine's share after weights, three slots for adapters and a workspace.
    cache = 0.45 * 80 * GIB - 2 * (size.base + 3 * size.adapter) - 2 * GIB
    assert needed.rows == pytest.approx(cache / (2 * size.cached * 25_600))
    assert needed.peak == max(needed.total(moment) for moment in needed.parts)


def test_shared_policies_and_sgd_need_less() -> None:
    isolated = memory(load_source("paper/voting-ip-math-0.6B", {}), H100).parts["update"]
    adam = {"train": {"adam": {"rule": "sgd"}}}
    shared = memory(load_source("paper/voting-sp-math-0.6B", adam), H100).parts["update"]
    assert shared["adapters"] == isolated["adapters"] // 2
    assert shared["moments of the optimizer"] == 0


def test_base_weights_in_parts() -> None:
    config = load_source("paper/voting-ip-math-4B", {"parallel": {"mode": "fsdp2"}})
    size = sizes(config)
    parts = memory(config, Gpu(memory_of("80GB"), count=8)).parts
    apart = 2 * (size.tied + (size.base - size.tied) // 8 + 2 * size.largest)
    assert parts["update"]["base weights"] == apart
    assert parts["scoring"]["base weights"] == 2 * size.base
    alone = memory(config, H100).parts
    assert alone["update"]["base weights"] == 2 * size.base


@pytest.mark.parametrize(
    ("train", "rows", "tokens"),
    [
        ({"microbatch": 4}, 4, 25_600),
        ({"microbatch": 4, "microbatch_tokens": 60_000}, 2, 25_600),
        ({"microbatch": 4, "microbatch_tokens": 100}, 1, 25_600),
        ({"microbatch": 4, "packed": True}, 1, 4 * 25_600),
    ],
)
def test_the_largest_micro_batch(train: dict[str, Any], rows: int, tokens: int) -> None:
    shape = largest_micro_batch(load_source("paper/voting-ip-math-0.6B", {"train": train}))
    assert (shape.sequences, shape.tokens) == (rows, tokens)
    assert shape.masked == bool(train.get("packed"))


def test_the_engine_transformers_holds_the_rows_of_a_phase() -> None:
    tiny: dict[str, Any] = {"rollout": {"engine": "transformers", "problems": 2, "copies": 4}}
    config = load_source("paper/voting-ip-math-0.6B", tiny)
    parts = memory(config, H100).parts["sampling"]
    assert parts["keys and values"] == 2 * sizes(config).cached * 24 * 25_600
    halved = memory(config, Gpu(memory_of("80GB"), count=2)).parts["sampling"]
    assert halved["keys and values"] == parts["keys and values"] // 2
    few = load_source("paper/voting-ip-math-0.6B", {"rollout": tiny["rollout"] | {"max_rows": 6}})
    assert memory(few, H100).parts["sampling"]["keys and values"] == parts["keys and values"] // 4


def test_an_engine_that_sleeps_leaves_its_memory_to_the_update() -> None:
    asleep = {"rollout": {"vllm": {"sleep": True}}}
    parts = memory(load_source("paper/voting-ip-math-1.7B", asleep), H100).parts
    assert parts["update"]["engine"] < 3 * GIB
    assert parts["scoring"]["engine"] == parts["sampling"]["engine"] == int(0.45 * 80 * GIB)
