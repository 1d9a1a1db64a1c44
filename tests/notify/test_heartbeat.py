import threading
from contextvars import ContextVar

from roledrift.notices import Notice
from roledrift.notify.heartbeat import Heartbeat
from roledrift.records import RunHeader
from tests.notify.alerts import HEADER


class Keeper:
    def __init__(self) -> None:
        self.notices: list[Notice] = []
        self.told = threading.Event()

    def notify(self, notice: Notice, header: RunHeader) -> None:
        self.notices.append(notice)
        self.told.set()


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_silence_is_told_once_and_so_is_its_end() -> None:
    clock = Clock()
    heart = Heartbeat([], HEADER, steps=5, clock=clock)
    for step in range(4):
        heart.beat(step)
        assert heart.look() is None
        clock.now += 10
    clock.now += 40
    assert heart.limit == 50.0
    assert heart.look() is None, "as long as five steps is not longer than five steps"
    clock.now += 1
    alert = heart.look()
    assert alert is not None
    assert (alert.detector, alert.finding, alert.role, alert.level) == (
        *("heartbeat", "silent", "*", "WARN"),
    )
    assert alert.title == "no step since step 3, for 51 s"
    assert (alert.value, alert.threshold, alert.baseline, alert.onset) == (51.0, 50.0, 10.0, 3)
    clock.now += 500
    assert heart.look() is None
    heart.beat(4)
    over = heart.look()
    assert over is not None
    assert (over.id, over.state, over.level, over.step) == (alert.id, "closed", "INFO", 4)
    assert heart.look() is None
    assert heart.limit == 50.0, "the silence itself is no step to go by"


def test_minutes_count_from_the_start_and_the_longer_bound_counts() -> None:
    clock = Clock()
    heart = Heartbeat([], HEADER, minutes=2, steps=3, clock=clock)
    clock.now += 121
    alert = heart.look()
    assert alert is not None
    assert alert.title == "no step since the start, for 2.02 min"
    slow = Heartbeat([], HEADER, minutes=2, steps=3, clock=clock)
    for step in range(5):
        slow.beat(step)
        clock.now += 100
    assert slow.limit == 300.0


def test_nobody_knows_what_is_long_before_steps_were_timed() -> None:
    clock = Clock()
    heart = Heartbeat([], HEADER, steps=3, clock=clock)
    heart.beat(0)
    clock.now += 1e6
    assert heart.limit == 0.0
    assert heart.look() is None


def test_the_thread_tells_the_notifiers_and_ends_at_close() -> None:
    class Broken:
        def notify(self, notice: Notice, header: RunHeader) -> None:
            raise OSError("on purpose")

    keeper = Keeper()
    heart = Heartbeat([Broken(), keeper], HEADER, minutes=1e-6)
    heart.start()
    assert keeper.told.wait(10)
    heart.close()
    assert [one.change for one in keeper.notices] == ["silent"]
    assert heart._thread is not None
    assert not heart._thread.is_alive()


def test_notifiers_see_the_context_of_the_thread_that_steps() -> None:
    """trackio keeps its open run in a context variable, and a thread begins with none."""
    opened: ContextVar[str] = ContextVar("opened", default="nothing")
    seen: list[str] = []

    class Reader(Keeper):
        def notify(self, notice: Notice, header: RunHeader) -> None:
            seen.append(opened.get())
            super().notify(notice, header)

    reader = Reader()
    heart = Heartbeat([reader], HEADER, minutes=0.001)
    heart.start()
    opened.set("the run")
    heart.beat(0)
    assert reader.told.wait(10)
    heart.close()
    assert seen[0] == "the run"
