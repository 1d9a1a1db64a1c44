from typing import Any

import pytest

from reference_trainer.errors import SettingsError
from reference_trainer.grid import load_source
from reference_trainer.planning.gpu import Gpu, memory_of
from reference_trainer.planning.plan import EXPERIMENT, changed, fits_with, plan


def gpu(memory: str, count: int = 1) -> Gpu:
    return Gpu(memory_of(memory), count=count)


def test_a_run_that_fits_needs_no_advice() -> None:
    made = plan(load_source("paper/voting-ip-code-0.6B", {}), gpu("80GB"))
    assert made.fits
    assert made.advice == {}


@pytest.mark.parametrize(
    ("cell", "over", "device", "settings"),
    [
        ("voting-ip-math-1.7B", {}, gpu("24GB"), {"rollout.vllm.sleep"}),
        (
            "voting-ip-code-0.6B",
            {"rollout": {"engine": "transformers"}},
            gpu("80GB"),
            {"rollout.max_rows"},
        ),
        (
            "voting-ip-code-0.6B",
            {"train": {"microbatch": 64}, "model": {"gradient_checkpointing": False}},
            gpu("80GB"),
            {"train.microbatch"},
        ),
        (
            "voting-ip-code-1.7B",
            {"rollout": {"vllm": {"gpu_memory": 0.9, "sleep": True}}},
            gpu("80GB"),
            {"rollout.vllm.gpu_memory"},
        ),
    ],
)
def test_advice_names_few_settings_and_fits(
    cell: str, over: dict[str, Any], device: Gpu, settings: set[str]
) -> None:
    config = load_source(f"paper/{cell}", over)
    made = plan(config, device)
    assert not made.fits
    assert set(made.advice) == settings
    assert plan(changed(config, made.advice), device).fits
    for name, value in made.advice.items():  # a step back and it does not fit
        more = not value if value is True else value + (0.02 if isinstance(value, float) else 1)
        assert not fits_with(config, made.advice | {name: more}, device)


def test_shorter_rows_are_the_last_resort() -> None:
    config = load_source("paper/eval_opt-ip-math-4B", {})
    made = plan(config, gpu("32GB"))
    assert EXPERIMENT & set(made.advice)
    assert plan(changed(config, made.advice), made.gpu).fits


def test_a_run_that_cannot_fit_gets_no_advice() -> None:
    made = plan(load_source("paper/voting-ip-code-4B", {}), gpu("6GB"))
    assert not made.fits
    assert made.advice == {}


def test_wrong_assumptions_are_an_error() -> None:
    with pytest.raises(SettingsError, match="--gpus must be at least 1, got 0"):
        plan(load_source("paper/voting-ip-code-0.6B", {}), gpu("80GB", 0))
