from __future__ import annotations

import numpy as np
import pytest
from roledrift.detect.entropy_collapse import EntropyCollapse

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect.healthy import Run

TWO = ("generator", "aggregator")


def judge(records: list[StepRecord]) -> dict[str, list[Verdict]]:
    detector = EntropyCollapse(VOTING, Config())
    found: dict[str, list[Verdict]] = {role: [] for role in TWO}
    for record in records:
        for one in detector.update(record):
            found[one.role].append(one)
    return found


def records(entropy: list[float], accuracy: list[float], equal: list[float]) -> list[StepRecord]:
    return [
        StepRecord(
            step,
            groups={"generator": {"entropy": Stat(900, h), "zero_variance": Stat(16, z)}},
            totals={} if a < 0 else {"accuracy": a},
        )
        for step, (h, a, z) in enumerate(zip(entropy, accuracy, equal, strict=True))
    ]


def fallen(to: float) -> list[float]:
    return [0.2] * 15 + [to] * 15


def test_next_to_nothing_left_and_ever_more_groups_without_signal_is_a_collapse() -> None:
    found = judge(records(fallen(0.01), [0.4] * 30, [0.3] * 15 + [0.8] * 15))["generator"][-1]
    assert (found.state, found.finding) == ("drift", "entropy_collapse")
    assert found.onset == 15
    assert "zero_variance 0.3 -> 0.8" in found.reason


def test_next_to_nothing_left_and_a_fallen_reward_is_a_collapse() -> None:
    found = judge(records(fallen(0.01), [0.6] * 18 + [0.2] * 12, [0.3] * 30))["generator"][-1]
    assert (found.state, found.finding) == ("drift", "entropy_collapse")


def test_sharpening_that_pays_is_fine() -> None:
    rising = [0.4] * 15 + [0.9] * 15
    assert judge(records(fallen(0.01), rising, [0.3] * 15 + [0.8] * 15))["generator"][-1].state == (
        "ok"
    )


@pytest.mark.parametrize(
    ("entropy", "equal"), [(fallen(0.08), [0.3] * 15 + [0.9] * 15), (fallen(0.01), [0.3] * 30)]
)
def test_half_of_it_is_watched(entropy: list[float], equal: list[float]) -> None:
    assert judge(records(entropy, [0.4] * 30, equal))["generator"][-1].state == "watch"


def test_without_a_reward_it_is_only_watched_and_says_so() -> None:
    found = judge(records(fallen(0.01), [-1.0] * 30, [0.3] * 30))["generator"][-1]
    assert (found.state, found.needs) == ("watch", ("reward",))


def test_an_explosion_has_its_own_name() -> None:
    found = judge(records(fallen(1.5), [0.4] * 30, [0.3] * 30))["generator"][-1]
    assert (found.state, found.finding) == ("drift", "entropy_explosion")
    assert found.threshold == pytest.approx(0.4)


def test_a_role_without_entropy_says_so_and_gaps_are_passed_over() -> None:
    made = records(fallen(0.1), [0.4] * 30, [0.3] * 30)
    made[20] = StepRecord(20)
    found = judge(made)
    assert found["aggregator"][-1].needs == ("entropy",)
    assert len(found["generator"]) == 29


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_delay_on_a_planted_collapse(correlation: float) -> None:
    """Entropy to a tenth within ten steps from 50 on, accuracy halves from 55 to 75."""
    delays = []
    for seed in range(20):
        run = Run(seed, correlation)
        run.entropy = run.entropy * 10.0 ** -run.ramp(50, 10)
        run.solve(run.skill * (1 - 0.5 * run.ramp(55, 20)))
        drifts = [
            step
            for one in judge(run.records()).values()
            for step, verdict in enumerate(one)
            if verdict.finding == "entropy_collapse"
        ]
        assert drifts
        assert min(drifts) >= 50
        delays.append(min(drifts) - 50)
    assert np.median(delays) <= 20
