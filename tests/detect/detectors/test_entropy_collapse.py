"""Entropy counts by what it bought."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from roledrift.detect.detectors import entropy_collapse
from roledrift.judgement import Alert
from roledrift.workflow import VOTING
from tests.detect.courses import FALLS, LEVEL, RISES, STEPS, line, noisy, ramp
from tests.detect.judging import found, judge, records


def entropies(
    entropy: Sequence[float], equal: Sequence[float], accuracy: Sequence[float]
) -> list[Alert]:
    stats = {"entropy": entropy, "zero_variance": equal}
    return judge(
        entropy_collapse.CARD,
        records({"generator": stats, "aggregator": {}}, {"accuracy": accuracy}),
        VOTING,
    )[0]


@pytest.mark.parametrize(
    ("entropy", "equal", "accuracy", "expected", "severity"),
    [
        (ramp(0.2, 0.02), line(0.2, 0.8), FALLS, "entropy_collapse", "failing"),
        (ramp(0.2, 0.02), line(0.2, 0.8), LEVEL, "entropy_collapse", "suspicious"),
        (ramp(0.2, 0.02), line(0.2, 0.8), RISES, "", None),
        (ramp(0.2, 0.02), line(0.2, 0.2), LEVEL, "", None),
        (ramp(0.2, 0.02), line(0.2, 0.8), line(0.95, 0.95), "", None),
        (ramp(0.2, 0.12), line(0.2, 0.8), LEVEL, "", None),
        (ramp(0.2, 0.8), line(0.2, 0.2), FALLS, "entropy_explosion", "failing"),
        (ramp(0.2, 0.8), line(0.2, 0.2), LEVEL, "", None),
    ],
)
def test_entropy_counts_by_what_it_bought(
    entropy: list[float], equal: list[float], accuracy: list[float], expected: str, severity: str
) -> None:
    alerts = entropies(noisy(entropy), equal, accuracy)
    assert found(alerts) == ({(expected, "generator")} if expected else set())
    if expected:
        assert alerts[-1].severity == severity


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_entropy_is_judged_by_ratios(scale: float) -> None:
    entropy = [scale * one for one in noisy(ramp(0.2, 0.02))]
    alerts = entropies(entropy, line(0.2, 0.8), FALLS)
    assert found(alerts) == {("entropy_collapse", "generator")}


def test_an_echo_trap_has_all_three_signs() -> None:
    norms = noisy([0.1] * STEPS)
    norms[38] = 1.5
    stats = {"entropy": noisy(ramp(0.2, 0.03)), "zero_variance": line(0.2, 0.9), "grad_norm": norms}
    run = records({"generator": stats}, {"accuracy": line(0.6, 0.55)})
    alerts, _ = judge(entropy_collapse.CARD, run, VOTING)
    assert "echo_trap" in {one.finding for one in alerts} | {
        judge(entropy_collapse.CARD, run[:45], VOTING)[1]["generator"].finding
    }
