"""Who writes like whom: captures, what looks like one, and what is withheld."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from roledrift.detect.detectors.sp_role_capture import CARD
from roledrift.records import Stat, StepRecord
from tests.detect.judging import found, judge
from tests.detect.writing import CODE, ISOLATED, SHARED, STAMP, TERSE, WORK, Mixture, Way, run, way

Course = Callable[[int], float]
CAPTURE = ("sp_role_capture", "aggregator")


def ramp(before: float, after: float, start: int, end: int) -> Course:
    return lambda t: before + (after - before) * min(max((t - start) / (end - start), 0), 1)


def mix(share: Course, first: Way, second: Way) -> Mixture:
    return lambda t: [(1 - share(t), first), (share(t), second)]


def steady(one: Way) -> Mixture:
    return lambda t: [(1.0, one)]


WORKS = mix(ramp(0.55, 1, 8, 16), TERSE, WORK)
"""Generators that learn to show their work always, as in captures that arise by themselves."""

FOLLOWS = mix(ramp(0.12, 1, 12, 20), TERSE, WORK)
RISES = ramp(0.5, 0.95, 8, 20)


def made(
    generator: Mixture,
    aggregator: Mixture,
    *,
    accuracy: Course = lambda t: 0.5,
    seed: int = 0,
    steps: int = 40,
    texts: int = 32,
    words: int = 12,
) -> list[StepRecord]:
    noise = np.random.default_rng(seed + 1000).normal(size=steps) * 0.04
    return run(
        {"generator": generator, "aggregator": aggregator},
        seed=seed,
        steps=steps,
        texts=texts,
        words=words,
        totals=lambda t: {"accuracy": accuracy(t) + float(noise[t])},
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("texts", [8, 32])
def test_a_natural_capture_is_found_about_the_captured_role(seed: int, texts: int) -> None:
    alerts, last = judge(CARD, made(WORKS, FOLLOWS, accuracy=RISES, seed=seed, texts=texts), SHARED)
    assert found(alerts) == {CAPTURE}
    assert alerts[0].severity == "suspicious"
    assert alerts[0].step <= 26
    assert abs(alerts[0].onset - 14) <= 5
    verdict = last["aggregator"]
    assert (verdict.state, verdict.toward) == ("drift", "generator")
    assert verdict.value == pytest.approx(1, abs=0.15)


def test_a_capture_in_the_first_steps_is_found() -> None:
    generator = mix(ramp(0.55, 1, 3, 10), TERSE, WORK)
    aggregator = mix(ramp(0.12, 1, 5, 12), TERSE, WORK)
    alerts, _ = judge(CARD, made(generator, aggregator, accuracy=RISES), SHARED)
    assert found(alerts) == {CAPTURE}
    assert alerts[0].step <= 15


def test_a_capture_that_passes_is_closed() -> None:
    back = ramp(0, 0.9, 24, 28)
    share = ramp(0.12, 1, 12, 20)
    aggregator = mix(lambda t: share(t) if t < 24 else 1 - back(t), TERSE, WORK)
    alerts, last = judge(CARD, made(WORKS, aggregator, accuracy=RISES), SHARED)
    assert [one.state for one in alerts] == ["open", "closed"]
    assert last["aggregator"].state == "ok"


def test_it_is_failing_once_accuracy_has_fallen() -> None:
    aggregator = mix(ramp(0, 1, 12, 20), STAMP, WORK)
    alerts, _ = judge(CARD, made(steady(WORK), aggregator, accuracy=ramp(0.8, 0.3, 16, 26)), SHARED)
    assert found(alerts) == {CAPTURE}
    assert alerts[-1].severity == "failing"


def test_isolated_roles_do_not_apply() -> None:
    alerts, last = judge(CARD, made(WORKS, FOLLOWS, accuracy=RISES), ISOLATED)
    assert not alerts
    assert not any(one.applies for one in last.values())


def test_a_captor_that_changed_first_is_followed_to_a_third_way() -> None:
    generator = mix(ramp(0, 1, 10, 15), WORK, CODE)
    aggregator = mix(ramp(0, 1, 18, 26), STAMP, CODE)
    alerts, _ = judge(CARD, made(generator, aggregator, accuracy=RISES), SHARED)
    assert found(alerts) == {CAPTURE}


def test_a_role_that_comes_to_meet_another_is_the_captured_one() -> None:
    alerts, last = judge(
        CARD, made(mix(ramp(0, 1, 10, 15), WORK, STAMP), steady(STAMP), accuracy=RISES), SHARED
    )
    assert found(alerts) == {("sp_role_capture", "generator")}
    assert last["aggregator"].state == "ok"


def test_both_leaving_for_a_third_way_at_once_is_style_drift() -> None:
    named = [
        found(judge(CARD, made(both(WORK), both(STAMP), seed=seed), SHARED)[0]) for seed in range(8)
    ]
    assert sum(("style_drift", "generator") in one for one in named) >= 7
    assert sum(CAPTURE in one for one in named) <= 2


def both(start: Way) -> Mixture:
    return mix(ramp(0, 1, 15, 20), start, CODE)


def test_a_role_that_goes_its_own_way_is_no_capture() -> None:
    aggregator = mix(ramp(0, 1, 15, 20), STAMP, CODE)
    alerts, _ = judge(CARD, made(steady(WORK), aggregator), SHARED)
    assert found(alerts) == {("style_drift", "aggregator")}
    alerts, _ = judge(CARD, made(steady(WORK), aggregator, accuracy=RISES), SHARED)
    assert not alerts


@pytest.mark.parametrize("seed", range(3))
def test_a_role_that_is_paid_for_length_is_not_called_captured(seed: int) -> None:
    records = made(steady(WORK), mix(ramp(0, 1, 13, 20), STAMP, WORK), seed=seed)
    for t, record in enumerate(records):
        bias = 0.3 if t >= 12 else 0.0
        groups = {
            "generator": {**record.groups["generator"], "reward_bias": Stat(96, -bias / 3)},
            "aggregator": {**record.groups["aggregator"], "reward_bias": Stat(32, bias)},
            "*": {"reward": Stat(128, 0.5, sd=0.4)},
        }
        records[t] = replace(record, groups=groups)
    alerts, last = judge(CARD, records, SHARED)
    assert not alerts
    assert last["aggregator"].state == "watch"
    assert "reward_hacking" in last["aggregator"].reason


@pytest.mark.parametrize(
    ("generator", "aggregator"),
    [
        (steady(WORK), steady(STAMP)),
        (steady(way(11, 64)), steady(way(12, 64))),
        (mix(lambda t: 0.55, TERSE, WORK), mix(lambda t: 0.12, TERSE, WORK)),
    ],
)
@pytest.mark.parametrize(("texts", "words"), [(8, 12), (8, 4), (2, 50)])
def test_no_false_alarms_however_few_words(
    generator: Mixture, aggregator: Mixture, texts: int, words: int
) -> None:
    for seed in range(3):
        records = made(generator, aggregator, seed=seed, steps=100, texts=texts, words=words)
        alerts, _ = judge(CARD, records, SHARED)
        assert not alerts


def test_roles_that_write_alike_cannot_be_told_apart() -> None:
    _, last = judge(CARD, made(steady(WORK), steady(WORK)), SHARED)
    for verdict in last.values():
        assert verdict.state == "no verdict"
        assert "write alike" in verdict.reason


def test_a_role_that_is_no_longer_measured_is_not_called_fine() -> None:
    records = made(steady(WORK), steady(STAMP))
    for t in range(20, 40):
        groups = {"generator": records[t].groups["generator"]}
        records[t] = replace(records[t], groups=groups)
    alerts, last = judge(CARD, records, SHARED)
    assert not alerts
    assert last["aggregator"].state == "no verdict"
    assert "since step 20" in last["aggregator"].reason
    assert last["generator"].state == "ok"


def test_an_interrupted_series_changes_nothing() -> None:
    records = [one for one in made(WORKS, FOLLOWS, accuracy=RISES, steps=60) if one.step % 3]
    alerts, _ = judge(CARD, records, SHARED)
    assert found(alerts) == {CAPTURE}


def test_without_texts_it_says_what_it_needs() -> None:
    records = [StepRecord(step, groups={"generator": {}, "aggregator": {}}) for step in range(9)]
    alerts, last = judge(CARD, records, SHARED)
    assert not alerts
    assert {one.state for one in last.values()} == {"no verdict"}
    assert all("texts" in one.reason for one in last.values())
