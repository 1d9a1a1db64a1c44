import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.errors import StoreError
from roledrift.ingest import collect
from roledrift.ingest.collect import Collector, without_single_slots
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.rows import Event, Series, SpanRow, StepDone
from roledrift.records import Sample, StepRecord
from roledrift.workflow import VOTING


def gathered(events: list[Event]) -> tuple[dict[int, StepRecord], list[Sample], Collector]:
    collector = Collector(Ledger())
    found = [one for event in events for one in collector.take(event)] + list(collector.finish())
    return (
        {record.step: record for record, _ in found},
        [sample for _, samples in found for sample in samples],
        collector,
    )


def rows(step: int, n: int = 6) -> list[Event]:
    return [
        SpanRow(
            step,
            "generator",
            slot=i % 3,
            group=f"g{i % 2}",
            tokens=10 + i,
            reward=float(i % 2),
            text=f"answer {i} \\boxed{{{i}}}",
        )
        for i in range(n)
    ]


def test_spans_become_the_record_of_their_step() -> None:
    records, samples, collector = gathered([*rows(3), *rows(4), StepDone(3)])
    assert list(records) == [3, 4]
    record = records[3]
    assert record.mean("generator", "length") == 12.5
    assert record.mean("generator/1", "length") == 12.5
    assert record.mean("generator", "boxed") == 1
    assert record.mean("*", "zero_variance") == 1
    assert record.labels == {"source": "foreign"}
    assert "advantage_N" in record.missing
    assert {sample.role for sample in samples} == {"generator"}
    assert (collector.tally.spans, collector.tally.slots) == (12, {"generator": 3})


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 400), st.integers(1, 9))
def test_portions_do_not_show_in_the_result(texts: int, n: int) -> None:
    """Letting go of texts in the middle of a step changes nothing that is measured."""
    whole, _, _ = gathered(rows(0, n))
    before = collect._TEXT_BUDGET
    collect._TEXT_BUDGET = texts
    try:
        parts, _, _ = gathered(rows(0, n))
    finally:
        collect._TEXT_BUDGET = before
    assert parts[0].groups == whole[0].groups


def test_folded_rows_add_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "_ROW_BUDGET", 2)
    records, _, collector = gathered([*rows(0), *rows(1), *rows(2)])
    assert records[0].mean("generator", "length") == 12.5
    assert collector._ledger.counts["step measured in portions"] > 0


def test_sorted_steps_are_not_measured_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "_ROW_BUDGET", 7)
    records, _, collector = gathered([one for step in range(5) for one in rows(step)])
    assert [records[step].mean("generator", "zero_variance") for step in range(5)] == [1.0] * 5
    assert collector._ledger.counts == {}


def test_what_is_measured_here_wins_over_what_was_logged() -> None:
    logged = Series(
        0, {"generator": {"length": 99.0, "grad_norm": 2.0}}, {"reward": 0.5}, {"x": "y"}
    )
    records, _, _ = gathered([logged, *rows(0)])
    record = records[0]
    assert record.mean("generator", "length") == 12.5
    stat = record.stat("generator", "grad_norm")
    assert stat is not None
    assert (stat.n, stat.mean, record.totals, record.labels["x"]) == (1, 2.0, {"reward": 0.5}, "y")


def test_late_rows_and_odd_slots_are_counted() -> None:
    collector = Collector(Ledger())
    odd = SpanRow(0, "a", slot=10**6, tokens=1)
    events: list[Event] = [odd, StepDone(0), SpanRow(0, "a", tokens=1), StepDone(5)]
    found = [one for event in events for one in collector.take(event)]
    record = found[0][0]
    assert record.faults == {"slot number out of range": 1}
    assert collector._ledger.counts["record of a step that was finished already"] == 1


def test_too_many_roles() -> None:
    with pytest.raises(StoreError, match="more than 64 roles"):
        gathered([SpanRow(0, f"r{i}x") for i in range(100)])


def test_slots_of_roles_with_one_slot_are_dropped() -> None:
    records, _, _ = gathered([SpanRow(0, "aggregator", slot=0, tokens=1), *rows(0)])
    slots = {role.name: role.slots for role in VOTING.roles}
    kept = without_single_slots(records[0], slots).groups
    assert "generator/2" in kept
    assert "aggregator/0" not in kept
