"""A monitor keeps its budget: it measures more rarely, or leaves steps out."""

from roledrift.judgement import Alert, Incident
from roledrift.monitor.budget import Budget
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.monitor import Monitor
from roledrift.records import GramRecord, StepRecord
from tests.monitor.test_monitor import HEADER, Keeper


def test_above_its_budget_it_measures_more_rarely_and_says_so() -> None:
    """A clock by hand: steps take a second, of which draining the gradients takes 200 ms."""

    class Clock:
        now = 0.0

        def __call__(self) -> float:
            return self.now

    clock = Clock()

    class Slow:
        factor, steps = 1, 0

        def drain_gradients(self) -> list[GramRecord]:
            clock.now += 0.2 * (self.steps % self.factor == 0)
            self.steps += 1
            return []

        def faults(self) -> dict[str, int]:
            return {}

        def cost_ms(self) -> float:
            return 0.0

        def stretch(self, factor: int) -> None:
            self.factor = factor

    keeper, source = Keeper(), Slow()
    monitor = Monitor(HEADER, MonitorComponents(sinks=[keeper], budget=Budget(0.05)), clock=clock)
    monitor.attach(source)
    for step in range(20):
        clock.now += 0.8
        monitor.end_step(step)
    assert source.factor == 8
    assert not monitor.due(8, 2)
    assert monitor.due(16, 2)
    said = {record.step: record.labels["schedule"] for record in keeper.records if record.labels}
    assert min(said) == 9, "eight known steps per decision; the next record says it"
    assert "measured 8 times less often" in said[9]
    assert "25.0%" in said[9]


def test_a_host_may_leave_steps_out_that_are_too_short() -> None:
    """Records of 30 ms in steps of 100 ms: a clock by hand."""
    now = [0.0]

    class Judge:
        changed: tuple[Incident, ...] = ()

        def update(self, _: StepRecord) -> list[Alert]:
            now[0] += 0.03
            return []

    keeper = Keeper()
    parts = MonitorComponents(sinks=[keeper], judge=Judge(), budget=Budget(0.05))
    monitor = Monitor(HEADER, parts, clock=lambda: now[0])
    for step in range(40):
        now[0] += 0.1
        monitor.add_updates({"generator": 1})
        if monitor.skips(step):
            monitor.add_totals({"val_accuracy": 0.5})
            monitor.skip_step()
        else:
            monitor.end_step(step)
    steps = [record.step for record in keeper.records]
    assert steps == [*range(9), 16, 24, 32], "0.03 / 8 is below 5 %; the tenth step is thinned"
    last = keeper.records[-1]
    assert last.totals == {"val_accuracy": 0.5}, "kept for the next record"
    assert last.mean("generator", "updates") == 1, "of its own step"
