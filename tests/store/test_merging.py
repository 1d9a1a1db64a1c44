from __future__ import annotations

from roledrift.records import Stat, StepRecord
from roledrift.store.merging import Segment, merge


def test_a_replay_leaves_no_statistic_of_the_abandoned_timeline() -> None:
    old = StepRecord(0, "a", groups={"g": {"length": Stat(1, 1.0), "chi2": Stat(1, 1.0)}})
    new = StepRecord(0, "b", groups={"g": {"length": Stat(1, 2.0)}})
    merged, replaced = merge(
        [Segment("a", (0, "", "a"), (old,), False), Segment("b", (1, "", "b"), (new,), False)]
    )
    assert merged == [new]
    assert replaced == {("a", 0)}


def test_a_single_segment_that_replays_a_step_keeps_the_later_record() -> None:
    old, new = (StepRecord(0, "a", seq, groups={"g": {"x": Stat(1, 1.0)}}) for seq in (0, 1))
    assert merge([Segment("a", (0, "", "a"), (old, new), True)])[0] == [new]


def test_a_validation_after_the_last_step_joins_its_record() -> None:
    stats = {"g": {"x": Stat(1, 1.0)}}
    step = StepRecord(3, "a", 0, groups=stats, totals={"reward": 0.5})
    late = StepRecord(3, "a", 1, totals={"val_accuracy": 0.25})
    (record,), replaced = merge([Segment("a", (0, "", "a"), (step, late), True)])
    assert (record.writer, record.groups, replaced) == ("a", stats, frozenset())
    assert record.totals == {"reward": 0.5, "val_accuracy": 0.25}


def test_a_replayed_step_loses_the_late_validation_of_the_abandoned_timeline() -> None:
    step, again = (
        StepRecord(3, writer, groups={"g": {"x": Stat(1, 1.0)}}, totals={"reward": 0.5})
        for writer in "ab"
    )
    late = StepRecord(3, "a", 1, totals={"val_accuracy": 0.25})
    merged, replaced = merge(
        [Segment("a", (0, "", "a"), (step, late), True), Segment("b", (1, "", "b"), (again,), True)]
    )
    assert merged == [again]
    assert replaced == {("a", 3)}
