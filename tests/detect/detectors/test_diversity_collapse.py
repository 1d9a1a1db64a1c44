"""Slots of a role that make the same mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.detect.detectors import diversity_collapse
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect.courses import LEVEL, RISES, line, noisy, ramp
from tests.detect.judging import found, judge, records


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
