import math

import pytest

from reference_trainer.schedule import Schedule, lr_factor


def curve(schedule: Schedule, *, warmup: int, total: int, floor: float = 0.0) -> list[float]:
    return [
        lr_factor(step, schedule=schedule, warmup=warmup, total=total, floor=floor)
        for step in range(1, total + 3)
    ]


def test_golden() -> None:
    constant = curve("constant", warmup=4, total=6)
    assert constant == pytest.approx([0.25, 0.5, 0.75, 1, 1, 1, 1, 1])
    linear = curve("linear", warmup=2, total=5)
    assert linear == pytest.approx([0.5, 1, 0.75, 0.5, 0.25, 0, 0])
    cosine = curve("cosine", warmup=2, total=5)
    half = math.sqrt(0.5)
    assert cosine == pytest.approx([0.5, 1, (1 + half) / 2, 0.5, (1 - half) / 2, 0, 0])


def test_the_floor_is_where_a_decay_ends() -> None:
    for schedule in ("linear", "cosine"):
        rates = curve(schedule, warmup=1, total=10, floor=0.1)  # type: ignore[arg-type]
        assert rates[0] == 1.0
        assert rates[9] > rates[10] == pytest.approx(0.1) == rates[11]
        assert sorted(rates, reverse=True) == rates


def test_without_a_warm_up_the_first_iteration_has_the_full_rate() -> None:
    for schedule in ("constant", "linear", "cosine"):
        first = lr_factor(1, schedule=schedule, warmup=0, total=9)  # type: ignore[arg-type]
        assert first == pytest.approx(1.0, abs=0.11)


def test_position_zero_of_a_warm_up_is_zero() -> None:
    assert lr_factor(0, schedule="constant", warmup=15, total=500) == 0.0
