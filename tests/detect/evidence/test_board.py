"""Streams are made once, share one budget, and know what is known before the run."""

import math
from dataclasses import replace

import pytest

from roledrift.config import Config
from roledrift.detect.evidence.board import RATE, Board
from roledrift.detect.evidence.scales import COUNTS, RATIOS
from roledrift.detect.evidence.streams import MINOR, Stream
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING

LENGTH = Stream("length", COUNTS, 1, 0.2, 0.07, 0.04, base=True)
MOVED = Stream("moved", RATIOS, 1, 0.26, 0.3, 0.2, moves=True)


def record(step: int, length: float = 10.0, rate: float = 1e-3, **more: object) -> StepRecord:
    stats = {"length": Stat(8, length), "moved": Stat(8, rate)}
    found = StepRecord(step, groups=dict.fromkeys(VOTING.role_names, stats), totals={"lr": rate})
    return replace(found, **more)  # type: ignore[arg-type]


def test_a_stream_that_is_asked_for_twice_is_one() -> None:
    board = Board(VOTING, Config())
    one = board.watch("generator", LENGTH)
    assert board.watch("generator", LENGTH) is one
    assert board.watch("aggregator", LENGTH) is not one


def test_the_budget_is_split_over_the_streams_that_are_measured() -> None:
    board = Board(VOTING, Config(false_alerts_per_run=0.1))
    one = board.watch("generator", LENGTH)
    never = board.watch("generator", replace(MOVED, name="nowhere"))
    assert never.needed == one.needed == math.inf, "nothing alarms before there is a record"
    board.observe(record(1))
    assert (board.streams, one.needed) == (1, pytest.approx(math.log(1 / 0.1)))
    board.watch("aggregator", LENGTH)
    board.observe(record(2))
    assert board.streams == 2
    assert one.needed == board.needed == pytest.approx(math.log(2 / 0.1))


def test_a_minor_stream_takes_a_tenth_of_the_budget_of_another() -> None:
    board = Board(VOTING, Config(false_alerts_per_run=0.1))
    one = board.watch("generator", LENGTH)
    minor = board.watch("aggregator", replace(LENGTH, weight=MINOR))
    board.observe(record(1))
    chances = [math.exp(-state.needed) for state in (one, minor)]
    assert chances[0] == pytest.approx(10 * chances[1])
    assert sum(chances) == pytest.approx(0.1)


def test_the_policy_before_training_is_a_yardstick_of_the_start() -> None:
    board = Board(VOTING, Config())
    sick, healthy = board.watch("aggregator", LENGTH), board.watch("generator", LENGTH)
    base = {"aggregator": {"length": Stat(8, 3.0)}, "generator": {"length": Stat(8, 10.0)}}
    for step in range(1, 7):
        board.observe(record(step, base=base if step == 1 else {}))
    assert sick.sick_start
    assert not healthy.sick_start
    assert sick.typical == pytest.approx(3.0)


def test_starts_are_kept_with_the_learning_rate() -> None:
    board = Board(VOTING, Config())
    board.watch("generator", LENGTH)
    for step in range(1, 10):
        board.observe(record(step))
    starts = board.starts()
    assert starts["generator"]["length"] == pytest.approx(math.log(10.0))
    assert starts["aggregator"] == {RATE: pytest.approx(math.log(1e-3))}


def test_a_rate_beyond_that_of_earlier_runs_is_told_by_how_much() -> None:
    known = {"generator": {RATE: (math.log(1e-3), 0.2)}}
    board = Board(VOTING, Config(), known)
    board.observe(record(1, rate=1.1e-3))
    assert board.above_earlier_rates("generator") == 1.0
    board = Board(VOTING, Config(), known)
    board.observe(record(1, rate=5e-3))
    assert board.above_earlier_rates("generator") == pytest.approx(5.0)
    assert board.above_earlier_rates("aggregator") == 1.0


def test_a_raised_rate_makes_a_movement_likely_and_nothing_else() -> None:
    def evidence(raised_at: int) -> tuple[float, float]:
        board = Board(VOTING, Config())
        moved, length = board.watch("generator", MOVED), board.watch("generator", LENGTH)
        for step in range(1, 14):
            rate = 2e-3 if step >= raised_at else 1e-3
            one = record(step, rate=rate)
            board.observe(replace(one, groups=record(step).groups))
        return moved.evidence, length.evidence

    calm, raised = evidence(99), evidence(13)
    assert raised[0] > calm[0] + 1
    assert raised[1] == calm[1]
