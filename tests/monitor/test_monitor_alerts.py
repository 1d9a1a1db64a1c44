"""What an alert carries: texts and checkpoints from before, of earlier segments too."""

from dataclasses import replace
from pathlib import Path

from roledrift.judgement import Alert, TextPair
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.notices import Notice
from roledrift.records import Checkpoint, RunHeader, Sample, StepRecord
from tests.monitor.test_monitor import HEADER, Keeper, StopAt


class Heard:
    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def notify(self, notice: Notice, header: RunHeader) -> None:
        self.notices.append(notice)


class Opens(StopAt):
    """Opens an alert of the generator at a step, and closes it in the next."""

    def update(self, record: StepRecord) -> list[Alert]:
        if record.step == self.step + 1:
            (opened,) = super().update(replace(record, step=self.step))
            return self.grouped(record, [replace(opened, state="closed", step=record.step)])
        return self.grouped(record, [replace(one, onset=3) for one in super().update(record)])

    def grouped(self, record: StepRecord, alerts: list[Alert]) -> list[Alert]:
        self.changed = self.incidents.update(record.step, alerts)
        return alerts


def test_alerts_carry_texts_from_before_and_now_until_they_close() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(judge=Opens(5), sinks=[keeper]))
    for step in range(8):
        monitor.add_samples(
            [Sample(step, "generator", f"text {step}", prompt="p", flags=("canary",))]
        )
        monitor.end_step(step)
    opened, closed = keeper.alerts
    assert opened.pairs == (TextPair(0, 5, "text 0", "text 5", "p"),)
    assert (closed.state, closed.pairs) == ("closed", ())


def test_checkpoints_are_recorded_once_they_are_written(tmp_path: Path) -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper]))
    monitor.end_step(0)
    monitor.note_checkpoint(0, tmp_path)
    monitor.note_checkpoint(1, tmp_path / "deleted since")
    monitor.end_step(1)
    monitor.end_step(2)
    kept = [record.checkpoints for record in keeper.records]
    assert kept == [(), (Checkpoint(0, str(tmp_path)),), ()]


def test_a_resumed_run_knows_texts_and_checkpoints_of_earlier_segments() -> None:
    keeper = Keeper()
    old = [Sample(0, "generator", "at the start", prompt="p", flags=("canary",))]
    history = [StepRecord(1, checkpoints=(Checkpoint(1, "s3://b/1"),))]
    parts = MonitorComponents(
        judge=Opens(5), sinks=[keeper], history=lambda: history, texts=lambda: old
    )
    monitor = Monitor(HEADER, parts)
    monitor.add_samples([Sample(5, "generator", "now", prompt="p", flags=("canary",))])
    monitor.note_checkpoint(4, "s3://b/4")
    monitor.end_step(5)
    assert [one.before for one in keeper.alerts[0].pairs] == ["at the start"]
    assert [one.step for one in keeper.records[0].checkpoints] == [1, 4]


def test_incidents_are_kept_and_told_once(tmp_path: Path) -> None:
    keeper, heard = Keeper(), Heard()
    parts = MonitorComponents(
        judge=Opens(5), sinks=[keeper], notifiers=[heard], conclusion=lambda n: f"{n}."
    )
    monitor = Monitor(HEADER, parts)
    for step in range(8):
        monitor.end_step(step)
    assert [(one.step, one.state) for one in keeper.incidents] == [(5, "open"), (6, "closed")]
    assert [(one.change, one.text) for one in heard.notices] == [
        ("opened", keeper.incidents[0].sentence),
        ("closed", keeper.incidents[1].sentence),
    ]
    assert monitor.closing_line("a run") == "roledrift: 8. See: roledrift report 'a run'"


def test_what_an_earlier_segment_told_is_not_told_again() -> None:
    heard, keeper = Heard(), Keeper()
    history = [StepRecord(step) for step in range(6)]
    parts = MonitorComponents(
        judge=Opens(5), sinks=[keeper], notifiers=[heard], history=lambda: history
    )
    monitor = Monitor(HEADER, parts)
    monitor.end_step(6)
    assert [one.change for one in heard.notices] == ["closed"]
    assert [(one.step, one.state) for one in keeper.incidents] == [(5, "open"), (6, "closed")]


def test_a_monitor_that_judges_nothing_has_no_last_word() -> None:
    assert Monitor(HEADER, MonitorComponents()).closing_line("run") == ""
