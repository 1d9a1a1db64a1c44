from datetime import UTC, datetime

import pytest

from roledrift.records import StepRecord
from roledrift.store.silence import silent_for


def records(*seconds: float, writer: str = "w") -> list[StepRecord]:
    times = [datetime.fromtimestamp(s, UTC).isoformat() for s in seconds]
    return [StepRecord(step, writer=writer, time=time) for step, time in enumerate(times)]


@pytest.mark.parametrize(
    ("now", "silent"), [(1040, None), (1060, None), (1061, 31.0), (9000, 7970.0)]
)
def test_an_open_run_is_silent_after_three_median_steps(now: float, silent: float | None) -> None:
    regular = records(1000, 1010, 1020, 1030)
    assert silent_for(regular, state="open", now=now) == silent
    assert silent_for(regular, state="finished", now=now) is None
    assert silent_for(regular, state="open", now=now, changed=now - 1) is None


def test_a_pause_like_one_before_is_no_silence() -> None:
    evaluates = records(0, 10, 20, 120, 130)
    assert silent_for(evaluates, state="open", now=130 + 150) is None
    assert silent_for(evaluates, state="open", now=130 + 151) == 151.0


def test_the_night_between_two_segments_is_no_pause() -> None:
    resumed = [*records(0, 10, 20), *records(50_000, 50_010, writer="v")]
    assert silent_for(resumed, state="open", now=50_041) == 31.0


def test_without_times_nobody_can_tell() -> None:
    assert silent_for([], state="open", now=1e9) is None
    assert silent_for([StepRecord(0), StepRecord(1)], state="open", now=1e9) is None
    assert silent_for(records(0), state="open", now=1e9) is None, "how long a step takes"
    assert silent_for([StepRecord(0)], state="open", now=100, changed=90) == 10.0
