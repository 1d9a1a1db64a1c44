"""What a host knows apart from its training rollouts: the base policy, and validations."""

from collections.abc import Sequence

import numpy as np

from roledrift.judgement import Alert
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.spans import SpanTable
from roledrift.store.merging import Segment, merge
from roledrift.workflow import VOTING
from tests.monitor.probes import Lengths, Rewards

HEADER = RunHeader("r", VOTING)


class Keeper:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []

    def write_step(self, record: StepRecord) -> None:
        self.records.append(record)

    def write_alert(self, alert: Alert) -> None:
        raise AssertionError("nobody judges here")

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        raise AssertionError("there are none")

    def close(self) -> None:
        pass


def watched() -> tuple[Monitor, Keeper]:
    keeper = Keeper()
    return Monitor(HEADER, MonitorComponents(probes=[Lengths(), Rewards()], sinks=[keeper])), keeper


def table(*tokens: int) -> SpanTable:
    roles = np.arange(len(tokens)) % 2
    return SpanTable(VOTING.role_names, role_N=roles, tokens_N=np.array(tokens))


def test_the_first_record_alone_carries_the_base_policy() -> None:
    monitor, keeper = watched()
    monitor.observe_base(table(10, 2))
    monitor.observe_base(table(20, 4))
    for step in (1, 2):
        monitor.observe(table(7, 7))
        monitor.end_step(step)
    first, second = keeper.records
    assert first.base["generator"]["length"].mean == 15.0
    assert first.base["aggregator"]["length"].mean == 3.0
    assert first.mean("generator", "length") == 7.0, "the step's own statistics are apart"
    assert second.base == {}


def test_a_base_policy_that_comes_too_late_is_a_fault_and_changes_nothing() -> None:
    monitor, keeper = watched()
    monitor.end_step(1)
    monitor.observe_base(table(10, 2))
    monitor.end_step(2)
    assert [one.base for one in keeper.records] == [{}, {}]
    assert keeper.records[1].faults == {"base policy: CaptureError": 1}


def test_a_validation_is_kept_problem_by_problem_with_its_accuracy() -> None:
    monitor, keeper = watched()
    monitor.end_step(1)
    monitor.add_validation([True, False, True, True])
    monitor.end_step(2)
    monitor.end_step(3)
    assert [one.solved for one in keeper.records] == ["", "1011", ""]
    assert [one.totals for one in keeper.records] == [{}, {"val_accuracy": 0.75, "val_n": 4.0}, {}]


def test_a_validation_after_the_last_step_belongs_to_it() -> None:
    monitor, keeper = watched()
    monitor.end_step(5)
    monitor.add_validation([True, False])
    monitor.close()
    _, late = keeper.records
    assert (late.step, late.solved) == (5, "10")
    assert late.totals == {"val_accuracy": 0.5, "val_n": 2.0}
    (merged,), _ = merge([Segment("w", (0, "", ""), tuple(keeper.records), ended=True)])
    assert merged.solved == "10"


def test_a_validation_without_problems_is_a_fault() -> None:
    monitor, keeper = watched()
    monitor.add_validation([])
    monitor.end_step(1)
    (record,) = keeper.records
    assert (record.solved, record.totals) == ("", {})
    assert record.faults == {"validation: CaptureError": 1}
