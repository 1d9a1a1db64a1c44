import logging
from collections.abc import Sequence

import numpy as np
import pytest

from roledrift.detect.incidents import Incidents
from roledrift.judgement import Alert, Incident
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.notices import Notice
from roledrift.records import GramRecord, RunHeader, Sample, StepRecord
from roledrift.spans import Comparison, SpanTable
from roledrift.sums import Key, Moments, Sums
from roledrift.workflow import VOTING
from tests.monitor.probes import Lengths, Rewards

HEADER = RunHeader("r", VOTING)


class Broken:
    name = "broken"
    needs: frozenset[str] = frozenset()

    def measure(self, spans: SpanTable) -> Sums:
        raise ZeroDivisionError("on purpose")


class Idle:
    name = "idle"
    needs = frozenset({"reward_N"})

    def measure(self, spans: SpanTable) -> Sums:
        return {}


class Keeper:
    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.alerts: list[Alert] = []
        self.incidents: list[Incident] = []
        self.samples: list[Sample] = []
        self.closed = 0

    def write_step(self, record: StepRecord) -> None:
        self.records.append(record)

    def write_alert(self, alert: Alert) -> None:
        self.alerts.append(alert)

    def write_incident(self, incident: Incident) -> None:
        self.incidents.append(incident)

    def write_samples(self, step: int, samples: Sequence[Sample]) -> None:
        self.samples.extend(samples)

    def close(self) -> None:
        self.closed += 1


class StopAt:
    def __init__(self, step: int) -> None:
        self.step = step
        self.seen: list[int] = []
        self.changed: tuple[Incident, ...] = ()
        self.incidents = Incidents()

    def update(self, record: StepRecord) -> list[Alert]:
        self.seen.append(record.step)
        self.changed = ()
        if record.step != self.step:
            return []
        alert = Alert(
            id="x", detector="d", finding="d", role="generator", policy="p", level="ERROR",
            state="open", step=record.step, onset=record.step, title="stop", text="", stops=True,
        )  # fmt: skip
        self.changed = self.incidents.update(record.step, [alert])
        return [alert]


def table(*tokens: int) -> SpanTable:
    roles = np.arange(len(tokens)) % 2
    return SpanTable(VOTING.role_names, role_N=roles, tokens_N=np.array(tokens))


def test_a_step_is_the_sum_of_what_was_observed() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(probes=[Lengths(), Rewards()], sinks=[keeper]))
    monitor.observe(table(10, 2))
    monitor.observe(table(20, 4, 30))
    monitor.add_samples([Sample(7, "generator", "text")])
    monitor.label(temperature="0.7")
    monitor.end_step(7, {"reward": 0.5})
    rewarded = SpanTable(VOTING.role_names, role_N=np.array([0]), reward_N=np.array([1.0]))
    monitor = Monitor(HEADER, MonitorComponents(probes=[Lengths(), Idle()], sinks=[keeper]))
    monitor.observe(table(1))
    monitor.observe(rewarded)
    monitor.end_step(8)
    first, second = keeper.records
    assert first.step == 7
    assert first.mean("generator", "length") == 20.0
    assert first.mean("aggregator", "length") == 3.0
    assert first.totals == {"reward": 0.5}
    assert first.missing == ("reward_N",)
    assert first.labels == {"temperature": "0.7"}
    assert first.cost_ms["probes"] >= 0
    assert [sample.text for sample in keeper.samples] == ["text"]
    assert second.missing == (), "a column that one table of the step has is not missing"


def test_what_fails_is_counted_named_once_and_the_record_is_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(probes=[Broken(), Lengths()], sinks=[keeper]))
    with caplog.at_level(logging.WARNING, logger="roledrift"):
        for step in range(3):
            monitor.observe(table(1, 1))
            monitor.observe(table(1, 1))
            monitor.end_step(step)
    assert [record.faults for record in keeper.records] == [
        {"probe broken: ZeroDivisionError": 2}
    ] * 3
    assert keeper.records[0].mean("generator", "length") == 1.0
    assert len(caplog.records) == 1
    assert "on purpose" in caplog.text


def test_strict_lets_exceptions_through() -> None:
    monitor = Monitor(HEADER, MonitorComponents(probes=[Broken()]), strict=True)
    with pytest.raises(ZeroDivisionError):
        monitor.observe(table(1))


def test_a_sink_that_fails_does_not_stop_the_others() -> None:
    class Full(Keeper):
        def write_step(self, record: StepRecord) -> None:
            raise OSError("disk full")

    keeper = Keeper()
    monitor = Monitor(
        HEADER, MonitorComponents(probes=[Lengths()], sinks=[Full(), keeper], judge=StopAt(0))
    )
    monitor.observe(table(1))
    assert monitor.end_step(0).stop
    assert len(keeper.records) == 1
    assert len(keeper.alerts) == 1
    monitor.end_step(1)
    assert keeper.records[1].faults == {"write: OSError": 1}


def test_sources_are_drained_once_per_step() -> None:
    class Source:
        drained = 0

        def drain(self) -> list[SpanTable]:
            self.drained += 1
            return [table(3), table(5)]

        def faults(self) -> dict[str, int]:
            return {"unknown role": 2}

    class Gradients:
        def drain_gradients(self) -> list[GramRecord]:
            return [GramRecord("shared", ("generator",), ((4.0,),))]

        def faults(self) -> dict[str, int]:
            return {"no labels": 1}

        def cost_ms(self) -> float:
            return 0.0

        def stretch(self, factor: int) -> None:
            self.factor = factor

    keeper, source = Keeper(), Source()
    monitor = Monitor(HEADER, MonitorComponents(probes=[Lengths()], sinks=[keeper]))
    monitor.attach(source)
    monitor.attach(Gradients())
    monitor.end_step(0)
    (record,) = keeper.records
    assert source.drained == 1
    assert record.mean("generator", "length") == 4.0
    assert record.faults == {"no labels": 1, "unknown role": 2}
    assert record.gradients[0].products == ((4.0,),)
    assert {"capture", "gradients"} <= set(record.cost_ms)


def test_a_resumed_run_shows_the_judge_its_past_but_not_the_replayed_steps() -> None:
    judge = StopAt(-1)
    past = [StepRecord(step=step) for step in range(6)]
    monitor = Monitor(HEADER, MonitorComponents(judge=judge, history=lambda: past))
    monitor.end_step(4)
    monitor.end_step(5)
    assert judge.seen == [0, 1, 2, 3, 4, 5]


class OtherRank:
    """A reducer as seen from the second of two ranks: adds the first rank's sums, obeys it."""

    def __init__(self, others: Sums, stop: bool) -> None:
        self.others, self.stop = others, stop

    def is_first(self) -> bool:
        return False

    def add(self, sums: Sums) -> Sums:
        return {**self.others, **sums}

    def spread(self, stop: bool) -> bool:
        return self.stop


def test_other_ranks_write_nothing_and_obey() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper], reducer=OtherRank({}, stop=True)))
    assert monitor.end_step(0).stop
    assert keeper.records == []


def test_close_is_idempotent() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper]))
    monitor.close()
    monitor.close()
    assert keeper.closed == 1


def test_a_validation_after_the_last_step_is_kept_with_it() -> None:
    keeper, judge = Keeper(), StopAt(9)
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper], judge=judge))
    monitor.end_step(7, {"reward": 0.5})
    monitor.add_totals({"val_accuracy": 0.25, "reward": 9.0})  # of a step that never ended
    monitor.close()
    assert [one.totals for one in keeper.records] == [{"reward": 0.5}, {"val_accuracy": 0.25}]
    assert [one.step for one in keeper.records] == [7, 7]
    assert judge.seen == [7]


def test_a_run_without_steps_keeps_no_validation() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper]))
    monitor.add_totals({"val_accuracy": 0.25})
    monitor.close()
    assert keeper.records == []


def test_every_comparison_is_labelled_with_its_two_sides() -> None:
    def compared(**facts: object) -> SpanTable:
        zero = np.zeros(1)
        one = Comparison("old", np.ones(1, np.int64), *(zero,) * 5, **facts)  # type: ignore[arg-type]
        return SpanTable(VOTING.role_names, np.array([0]), comparisons=(one,))

    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper]), strict=True)
    for steps in range(3):
        monitor.observe(compared(temperature_a=0.7, temperature_b=0.7, steps_between=steps))
    monitor.end_step(0)
    monitor.observe(compared())
    monitor.label(old="as I say")
    monitor.end_step(1)
    monitor.end_step(2)
    sides = "policy vs policy at the start of the iteration"
    assert [record.labels for record in keeper.records] == [
        {"old": f"{sides}, T=0.7, 0 to 2 steps between"},
        {"old": "as I say"},
        {},
    ]


def test_optimizer_steps_are_counted_per_role() -> None:
    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper]))
    for _ in range(3):
        monitor.add_updates({"generator": 1})
    monitor.end_step(0)
    monitor.end_step(1)
    monitor.add_updates({"aggregator": 2, "agregator": 1})
    monitor.end_step(2)
    counts = [[one.mean(role, "updates") for role in VOTING.role_names] for one in keeper.records]
    assert counts == [[3, 0], [None, None], [0, 2]]
    assert dict(keeper.records[2].faults) == {"updates: ConfigError": 1}


def test_shares_are_in_the_record() -> None:
    class AllLengths(Lengths):
        def measure(self, spans: SpanTable) -> Sums:
            assert spans.tokens_N is not None
            return {**super().measure(spans), Key("*", "length"): Moments.of(spans.tokens_N)}

    keeper = Keeper()
    monitor = Monitor(HEADER, MonitorComponents(probes=[AllLengths()], sinks=[keeper]), strict=True)
    monitor.observe(table(10, 2))
    monitor.observe(table(4))
    monitor.end_step(0)
    assert keeper.records[0].mean("generator", "token_share") == 14 / 16


def test_pulse_and_notifiers_hear_of_steps_and_of_the_end() -> None:
    class Heard:
        def __init__(self) -> None:
            self.said: list[object] = []

        def beat(self, step: int) -> None:
            self.said.append(step)

        def notify(self, notice: Notice, header: RunHeader) -> None:
            self.said.append(notice.change)

        def close(self) -> None:
            self.said.append("closed")

    pulse, notifier = Heard(), Heard()
    monitor = Monitor(HEADER, MonitorComponents(judge=StopAt(1), notifiers=[notifier], pulse=pulse))
    monitor.end_step(0)
    monitor.end_step(1)
    monitor.close()
    monitor.close()
    assert pulse.said == [0, 1, "closed"]
    assert notifier.said == ["opened", "closed"]
