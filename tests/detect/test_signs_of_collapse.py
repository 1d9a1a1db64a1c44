"""Entropy, diversity, laziness: healthy runs that learn are quiet, planted collapses are found."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import pytest

from roledrift.detect.detectors import diversity_collapse, entropy_collapse, lazy_role
from roledrift.judgement import Alert
from roledrift.records import Stat, StepRecord
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING
from tests.detect.healthy import Run
from tests.detect.judging import found, judge, records

CARDS = (entropy_collapse.CARD, diversity_collapse.CARD, lazy_role.CARD)
STEPS = 60


def noisy(values: Sequence[float], seed: int = 0, sd: float = 0.1) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(x) for x in np.asarray(values) * np.exp(sd * rng.normal(size=len(values)))]


def ramp(before: float, after: float, start: int = 20, length: int = 15) -> list[float]:
    share = np.clip((np.arange(STEPS) - start) / length, 0, 1)
    return [float(x) for x in before * (after / before) ** share]


def line(before: float, after: float, start: int = 20, length: int = 15) -> list[float]:
    share = np.clip((np.arange(STEPS) - start) / length, 0, 1)
    rng = np.random.default_rng(9)
    noise = 0.03 * rng.normal(size=STEPS)
    return [float(x) for x in np.clip(before + (after - before) * share + noise, 0, 1)]


LEVEL = line(0.5, 0.5)
FALLS = line(0.7, 0.3)
RISES = line(0.4, 0.9, 5, 30)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_healthy_runs_that_learn_are_quiet(correlation: float) -> None:
    alarmed = 0
    for seed in range(25):
        run = Run(seed, correlation, steps=100).records()
        alerts = chain.from_iterable(judge(card, run, VOTING)[0] for card in CARDS)
        told = list(alerts)
        assert not [one for one in told if one.severity == "failing"]
        alarmed += bool(told)
    assert alarmed <= 1


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


def siblings(
    agreement: Sequence[float], openers: Sequence[float], accuracy: Sequence[float]
) -> list[StepRecord]:
    stats = {
        "wrong_agreement": [Stat(40, one) for one in agreement],
        "wrong_jaccard": [Stat(40, one) for one in agreement],
        "openers": [Stat(96, one) for one in openers],
    }
    return records({"generator": stats}, {"accuracy": accuracy})


def test_the_same_mistakes_are_found_where_nothing_is_gained() -> None:
    copies = siblings(line(0.25, 0.9), noisy(ramp(9, 3)), LEVEL)
    alerts, last = judge(diversity_collapse.CARD, copies, VOTING)
    assert found(alerts) == {("diversity_collapse", "generator")}
    assert not last["aggregator"].applies
    improving = siblings(line(0.25, 0.9), noisy(ramp(9, 3)), RISES)
    assert not judge(diversity_collapse.CARD, improving, VOTING)[0]


def test_fewer_openings_alone_are_nothing() -> None:
    alerts, _ = judge(
        diversity_collapse.CARD, siblings(line(0.25, 0.25), noisy(ramp(9, 2)), LEVEL), VOTING
    )
    assert not alerts


def verdicts(correct: Sequence[float], accuracy: Sequence[float]) -> list[StepRecord]:
    return records({"evaluator": {"verdict_correct": correct}}, {"accuracy": accuracy})


def test_a_judge_that_always_stamps_is_a_fact_from_the_first_step() -> None:
    alerts, _ = judge(lazy_role.CARD, verdicts([1.0] * STEPS, RISES), EVAL_OPT)
    assert found(alerts) == {("rubber_stamp", "evaluator")}
    assert alerts[0].severity == "suspicious"
    assert alerts[0].onset == 1


@pytest.mark.parametrize("truth", [0.97, 0.5])
def test_verdicts_are_held_to_the_truth(truth: float) -> None:
    said = [truth] * STEPS
    assert not judge(lazy_role.CARD, verdicts(said, [truth] * STEPS), EVAL_OPT)[0]


def test_a_judge_that_begins_to_stamp_counts_where_nothing_is_gained() -> None:
    said = line(0.4, 1.5)
    assert not judge(lazy_role.CARD, verdicts(said, RISES), EVAL_OPT)[0]
    alerts, _ = judge(lazy_role.CARD, verdicts(said, FALLS), EVAL_OPT)
    assert found(alerts) == {("lazy_role", "evaluator")}
    assert alerts[-1].severity == "failing"


def test_without_accuracy_a_judge_is_not_judged() -> None:
    alerts, last = judge(
        lazy_role.CARD, records({"evaluator": {"verdict_correct": [1.0] * 20}}), EVAL_OPT
    )
    assert not alerts
    assert last["evaluator"].state == "no verdict"


def test_a_selector_that_gives_one_answer_and_a_synthesizer_that_copies() -> None:
    openers = [4.0] * 25 + [1.0] * 35
    alerts, _ = judge(
        lazy_role.CARD, records({"aggregator": {"openers": openers}}, {"accuracy": LEVEL}), VOTING
    )
    assert found(alerts) == {("constant_output", "aggregator")}
    alerts, _ = judge(
        lazy_role.CARD,
        records({"synthesizer": {"copied": line(0.5, 1.0)}}, {"accuracy": LEVEL}),
        ORCH_WORKERS,
    )
    assert found(alerts) == {("copies_input", "synthesizer")}
