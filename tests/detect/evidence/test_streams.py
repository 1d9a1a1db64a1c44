"""Streams: what completes one, what never does, and when it is over."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.config import Config
from roledrift.detect.evidence.board import BASE, Board
from roledrift.detect.evidence.process import needed
from roledrift.detect.evidence.scales import COUNTS, LINEAR, RATIOS, SHARES, Scale
from roledrift.detect.evidence.start import Yardstick
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.records import Stat, StepRecord
from roledrift.workflow import SINGLE

MOVED = Stream("x", RATIOS, 1, math.log(1.3), 0.3, 0.2, 0.1)
FELL = Stream("x", RATIOS, -1, math.log(1.3), 0.3, 0.2, 0.1)


def _record(step: int, value: float | None, role: str = "generator", n: float = 64) -> StepRecord:
    return StepRecord(step, groups={} if value is None else {role: {"x": Stat(n, value)}})


def _state(of: Stream = MOVED, yardstick: Yardstick | None = None) -> StreamState:
    state = StreamState(of, "generator", window=8, close_after=5)
    state.needed = needed(0.05, 10)
    if yardstick is not None:
        state.measure_by(yardstick)
    return state


def _fed(values: Iterable[float | None], state: StreamState | None = None) -> StreamState:
    state = state or _state()
    for value in values:
        state.observe(_record(state.step + 1, value))
    return state


def _healthy(seed: int, n: int = 20, sd: float = 0.25) -> list[float]:
    return [float(x) for x in 1e-3 * np.exp(np.random.default_rng(seed).normal(size=n) * sd)]


@given(st.integers(0, 500), st.sampled_from([0.01, 1e-5, 37.0]), st.floats(0.5, 6.0))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_evidence_is_free_of_scale(seed: int, unit: float, growth: float) -> None:
    values = [*_healthy(seed), *(growth * x for x in _healthy(seed + 1))]
    here, there = _state(), _state()
    for value in values:
        _fed([value], here)
        _fed([value * unit], there)
        assert there.process.log == pytest.approx(here.process.log, abs=1e-9)
        assert there.complete == here.complete
    assert there.ratio == pytest.approx(here.ratio)
    assert there.onset == here.onset


@pytest.mark.parametrize("spike", [10.0, 1e6, math.inf])
def test_one_spike_never_completes_and_teaches_nothing(spike: float) -> None:
    for seed in range(20):
        values = _healthy(seed)
        values[15] *= spike
        state = _state()
        for value in values:
            assert not _fed([value], state).complete
        assert state.start.center == pytest.approx(math.log(1e-3), abs=0.4)


@pytest.mark.parametrize(("growth", "within"), [(4.0, 8), (2.5, 25)])
def test_a_lasting_shift_completes_and_is_dated(growth: float, within: int) -> None:
    for seed in range(10):
        state = _fed(_healthy(seed, 20, 0.15))
        for value in _healthy(seed + 100, within, 0.15):
            _fed([growth * value], state)
            if state.complete:
                break
        assert state.complete, seed
        assert state.onset == pytest.approx(20, abs=3)
        assert state.evidence >= state.needed


def test_it_closes_once_it_has_come_back_and_can_open_again() -> None:
    state = _fed(_healthy(1))
    _fed([5 * x for x in _healthy(2, 10)], state)
    assert state.complete
    center = state.start.center
    back = [_fed([value], state).complete for value in _healthy(3, 12, 0.1)]
    assert back == [True] * 4 + [False] * 8
    assert state.start.center == center
    _fed([5 * x for x in _healthy(4, 10)], state)
    assert state.complete


def test_a_fall_is_watched_for_with_the_other_sign() -> None:
    values = [*_healthy(5), *(x / 4 for x in _healthy(6))]
    assert _fed(values, _state(FELL)).complete
    assert not _fed(values).complete
    assert _fed(values, _state(FELL)).ratio < 1


def test_nothing_is_learned_under_suspicion() -> None:
    state = _fed(_healthy(7, 6, 0.05))
    n, center = state.start.n, state.start.center
    assert n == 6
    _fed([1e-3 * 8] * 6, state)
    assert (state.start.n, state.start.center) == (n, center)


def test_the_first_four_records_are_the_start_and_the_fifth_is_judged() -> None:
    state = _state()
    for number, value in enumerate(_healthy(8, 5, 0.05)):
        _fed([value], state)
        assert state.judged == (number >= 4)
        assert state.known == (number >= 3)


def test_what_is_missing_is_passed_over() -> None:
    values = _healthy(9, 40)
    holes: list[float | None] = [x if i % 3 else None for i, x in enumerate(values)]
    nans: list[float | None] = [x if i % 3 else math.nan for i, x in enumerate(values)]
    kept = [x for x in holes if x is not None]
    assert _fed(holes).process.log == _fed(kept).process.log == _fed(nans).process.log
    state = _fed([None])
    assert (state.seen, state.judged, state.known, state.evidence) == (
        False, False, False, -math.inf
    )  # fmt: skip
    assert math.isnan(state.typical)
    assert math.isnan(state.now)


@pytest.mark.parametrize("odd", [math.inf, 1e308, -math.inf])
def test_infinite_values_in_the_start_leave_it_usable(odd: float) -> None:
    values = _healthy(10, 30)
    values[2] = odd
    state = _fed(values)
    assert math.isfinite(state.start.center)
    assert math.isfinite(state.start.spread)
    assert not state.complete
    assert _fed([6 * x for x in _healthy(11)], state).complete


@pytest.mark.parametrize("of", [MOVED, FELL, Stream("x", LINEAR, 1, 0.01, 0.03, 0.01)])
@pytest.mark.parametrize("value", [0.0, 1.0, -5.0, 1e-30])
def test_a_constant_series_is_no_evidence(of: Stream, value: float) -> None:
    state = _fed([value] * 200, _state(of))
    assert not state.leaning
    assert state.change == pytest.approx(0.0, abs=1e-9)


YARDSTICK = Yardstick(math.log(1e-3), 0.1, "earlier runs")


def test_a_yardstick_judges_from_the_first_record_on() -> None:
    state = _state(yardstick=YARDSTICK)
    judged = [_fed([5e-3], state).judged for _ in range(8)]
    assert all(judged)
    assert state.sick_start
    assert state.complete
    assert state.onset == 0
    assert state.typical == pytest.approx(1e-3)
    assert state.ratio == pytest.approx(5.0)
    assert not _fed([1e-3] * 50, _state(yardstick=YARDSTICK)).complete


def test_without_a_yardstick_a_start_that_is_sick_is_not_seen() -> None:
    assert not _fed([5e-3] * 50).complete


def test_a_start_that_was_sick_closes_once_it_is_like_the_yardstick() -> None:
    state = _fed([5e-3] * 10, _state(yardstick=YARDSTICK))
    assert state.complete
    _fed([1e-3] * 10, state)
    assert not state.complete
    assert not state.sick_start


def test_the_first_yardstick_counts() -> None:
    state = _state(yardstick=YARDSTICK)
    state.measure_by(Yardstick(5.0, 0.1, "another"))
    assert state.yardstick == YARDSTICK


def test_the_policy_before_training_is_a_yardstick_where_a_stream_asks_for_it() -> None:
    for asks in (True, False):
        board = Board(SINGLE, Config())
        state = board.watch("generator", Stream("x", COUNTS, 1, 0.2, 0.07, 0.04, base=asks))
        base = {"generator": {"x": Stat(64, 100.0)}}
        for step in range(8):
            groups = {"generator": {"x": Stat(64, 300.0)}}
            board.observe(StepRecord(step, groups=groups, base=base if step == 0 else {}))
        assert state.sick_start is asks
        if state.yardstick is not None:
            assert state.yardstick.source == BASE


def test_few_things_are_pooled_over_records() -> None:
    state = _state(Stream("x", LINEAR, 1, 0.0, 0.1, 0.05, pool=10))
    seen = []
    for step, value in enumerate([1.0, 2.0, 3.0, 4.0]):
        state.observe(_record(step, value, n=5))
        seen.append(state.value)
    assert seen == [None, 1.5, 1.5, 3.5]
    state.observe(_record(9, math.nan, n=5))
    state.observe(_record(10, 1.0, n=0))
    assert state.value == 3.5


def test_the_order_of_roles_does_not_matter() -> None:
    values = {role: _healthy(i, 30) for i, role in enumerate(("a", "b", "c"))}
    told = set()
    for order in permutations(values):
        board = Board(SINGLE, Config())
        states = {role: board.watch(role, MOVED) for role in order}
        for t in range(30):
            groups = {role: {"x": Stat(64, values[role][t])} for role in order}
            board.observe(StepRecord(t, groups=groups))
        told.add(tuple(states[role].process.log for role in values))
    assert len(told) == 1


@pytest.mark.parametrize("scale", [LINEAR, COUNTS, RATIOS, SHARES])
def test_scales_are_monotone_and_invertible(scale: Scale) -> None:
    values = [1e-3, 0.01, 0.2, 0.6, 0.99]
    if scale is COUNTS:
        values = [1.0, 2.0, 500.0, 1e6]
    on = [scale.on(one) for one in values]
    assert on == sorted(on)
    assert [scale.back(one) for one in on] == pytest.approx(values)
    for odd in (-1.0, 0.0, math.inf, -math.inf, 1e308):
        assert math.isfinite(scale.back(scale.on(odd)))
