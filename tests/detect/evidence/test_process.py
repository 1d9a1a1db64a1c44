"""The e-process against the sum that it abbreviates and the inequality that it promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.detect.evidence.process import CAP, HORIZON, SHIFTS, ChangeProcess, needed


def _reference(z: list[float]) -> float:
    """The evidence as its definition says: a sum over sizes of the shift and over change points."""
    h, total = HORIZON, 0.0
    for d in SHIFTS:
        for first in range(1, len(z) + 1):
            weight = h / ((first + h - 1) * (first + h))
            since = [min(max(one, -CAP), CAP) for one in z[first - 1 :]]
            total += weight * math.exp(sum(d * one - d * d / 2 for one in since))
    return math.log(total / len(SHIFTS))


def _fed(z: list[float]) -> ChangeProcess:
    process = ChangeProcess()
    for step, one in enumerate(z):
        process.observe(step, one)
    return process


VALUES = st.lists(st.floats(-6, 6), min_size=1, max_size=25)


@given(VALUES)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_it_is_the_sum_over_change_points_and_shifts(z: list[float]) -> None:
    assert _fed(z).log == pytest.approx(_reference(z), abs=1e-9)


@given(VALUES, st.integers(0, 24), st.floats(0, 3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_larger_excess_is_never_less_evidence(z: list[float], at: int, more: float) -> None:
    raised = list(z)
    raised[at % len(z)] += more
    assert _fed(raised).log >= _fed(z).log - 1e-12


def test_the_prior_on_the_change_point_adds_up_to_one_half_at_the_horizon() -> None:
    weights = [HORIZON / ((t + HORIZON - 1) * (t + HORIZON)) for t in range(1, 100_001)]
    assert math.fsum(weights[: int(HORIZON)]) == pytest.approx(0.5)
    assert math.fsum(weights) == pytest.approx(1.0, abs=2e-3)


def test_healthy_runs_reach_one_over_a_with_a_chance_of_at_most_a() -> None:
    """Ville's inequality on 250 runs of 500 standard normal records.

    The margin is three standard errors of a share measured on 250 runs.
    """
    runs, records, highest = 250, 500, []
    for run in np.random.default_rng(20260101).normal(size=(runs, records)).tolist():
        process, most = ChangeProcess(), -math.inf
        for step, one in enumerate(run):
            process.observe(step, one)
            most = max(most, process.log)
        highest.append(most)
    for share in (0.3, 0.1, 0.05, 0.01):
        reached = np.mean([one >= math.log(1 / share) for one in highest])
        assert reached <= share + 3 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize(("shift", "records"), [(1.0, 40), (2.0, 10), (5.0, 6)])
def test_a_lasting_shift_completes_within_so_many_records(shift: float, records: int) -> None:
    quiet = [0.0] * 20
    assert _fed(quiet + [shift] * records).log >= needed(0.05, 20)
    assert _fed(quiet + [shift] * 2).log < needed(0.05, 20)


@given(st.lists(st.floats(-4, 0), max_size=40), st.floats(1, 1e9))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_one_spike_never_completes(before: list[float], spike: float) -> None:
    assert _fed([*before, spike]).log < needed(0.05, 1)


def test_the_onset_is_the_first_step_of_the_present_excursion() -> None:
    process = _fed([0.0] * 10 + [2.0] * 3)
    assert (process.onset, process.quiet) == (10, False)
    for step in range(13, 40):
        process.observe(step, -1.0)
    assert (process.onset, process.quiet) == (None, True)


def test_forgetting_an_excursion_keeps_the_prior_where_it_was() -> None:
    process = _fed([3.0] * 10)
    process.reset()
    assert (process.log, process.onset) == (-math.inf, None)
    process.observe(10, 0.0)
    weight = HORIZON / ((11 + HORIZON - 1) * (11 + HORIZON))
    mean = np.mean([math.exp(-d * d / 2) for d in SHIFTS])
    assert process.log == pytest.approx(math.log(weight * mean))


def test_evidence_stays_finite_however_long_the_shift() -> None:
    process = _fed([3.0] * 2000)
    assert math.isfinite(process.log)
    assert process.log > 30


def test_the_budget_is_split_over_streams() -> None:
    assert needed(0.05, 1) == pytest.approx(math.log(20))
    assert needed(0.05, 10) == pytest.approx(math.log(200))
    assert needed(0.05, 0) == needed(0.05, 1)
    assert math.isfinite(needed(0.0, 5))
