from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.config import BaselineConfig
from roledrift.detect.baseline import Scale, Warmup
from roledrift.detect.sequential import Alarm, Cusum, average_run_length, chance_of, decision_for


def test_the_recursion_and_its_onset() -> None:
    cusum = Cusum(reference=1.0, decision=9.0)
    for step, z in enumerate([0.0, 2.0, 1.5, -5.0, 3.0, 2.0]):
        cusum.see(step, z)
    assert cusum.value == pytest.approx(3.0)
    assert cusum.onset == 4
    assert not cusum.complete


@given(st.lists(st.floats(-5, 2), max_size=30), st.floats(1, 1e12))
def test_one_spike_never_completes_the_evidence(values: list[float], spike: float) -> None:
    cusum = Cusum(reference=2.0, decision=8.0)
    for step, z in enumerate([*values, spike, spike]):
        cusum.see(step, z)
        assert not cusum.complete


def test_a_small_lasting_offset_adds_up_to_nothing() -> None:
    cusum = Cusum(reference=1.0, decision=8.0)
    for step in range(200):
        cusum.see(step, 3.0, least=8.0)
    assert cusum.value == 0
    assert cusum.onset is None


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_run_length_is_that_of_simulated_normal_values(shift: float) -> None:
    reference, decision, runs = 0.5, 3.0, 4000
    rng = np.random.default_rng(1)
    value, length, alive = np.zeros(runs), np.zeros(runs), np.ones(runs, dtype=bool)
    for _ in range(3000):
        length += alive
        value = np.maximum(0, value + rng.normal(shift, size=runs) - reference)
        alive &= value < decision
    assert length.mean() == pytest.approx(
        average_run_length(reference, decision, shift=shift), rel=0.08
    )


def test_the_run_length_where_shift_and_reference_meet() -> None:
    near = average_run_length(1.0, 8.0, shift=1.0 + 1e-4)
    assert average_run_length(1.0, 8.0, shift=1.0) == pytest.approx(near, rel=1e-2)


def test_drift_needs_effect_and_evidence() -> None:
    effect_only = Alarm(Cusum(1.0, 8.0), patience=2, forget_after=3)
    evidence_only = Alarm(Cusum(1.0, 8.0), patience=2, forget_after=3)
    for step in range(50):
        assert not effect_only.see(step, 0.5, least=0, effect=True, clean=False)
        assert not evidence_only.see(step, 9.0, least=0, effect=False, clean=False)


def test_a_past_excursion_does_not_date_a_new_one() -> None:
    alarm = Alarm(Cusum(1.0, 8.0), patience=2, forget_after=3)
    for step in range(10):
        alarm.see(step, 9.0, least=0, effect=True, clean=False)
    assert alarm.drifting
    for step in range(10, 13):
        alarm.see(step, 1.0, least=0, effect=False, clean=True)
    assert alarm.cusum.onset is None
    for step in range(13, 20):
        alarm.see(step, 9.0, least=0, effect=True, clean=False)
    assert alarm.drifting
    assert alarm.cusum.onset == 13


def test_the_decision_is_solved_from_the_rate() -> None:
    assert decision_for(0.043) == pytest.approx(8.0)
    assert decision_for(1.0) == 0.0
    decisions = [decision_for(rate) for rate in (0.5, 0.05, 0.02, 0.01, 0.005, 0.001, 1e-6)]
    assert decisions == sorted(decisions)
    assert decisions[0] >= 1.0


@pytest.mark.parametrize(("correlation", "most"), [(0.0, 0.04), (0.5, 0.04), (0.8, 0.14)])
def test_the_stated_rate_is_kept_by_the_evidence_alone(correlation: float, most: float) -> None:
    """Baseline of eight, learned spread and correlation, 1 % outliers, no effect floor."""
    rng = np.random.default_rng(7)
    runs, steps, alarms = 600, 100, 0
    shocks = rng.normal(size=(runs, steps)) * np.sqrt(1 - correlation**2)
    series = np.empty((runs, steps))
    last = rng.normal(size=runs)
    for t in range(steps):
        last = series[:, t] = correlation * last + shocks[:, t]
    series += np.where(rng.random(series.shape) < 0.01, rng.uniform(1.5, 6.0, series.shape), 0)
    scale = Scale(log=False, sigma_floor=1e-3)
    for row in series.tolist():
        warmup, cusum = Warmup(BaselineConfig(), scale), Cusum(1.0, decision_for(0.04))
        for step, value in enumerate(row):
            base = warmup.baseline
            if base is None:
                warmup.see(value)
                continue
            cusum.see(step, base.z(value), correlation=base.correlation)
            warmup.learn(value, healthy=cusum.quiet)
            if cusum.complete:
                alarms += 1
                break
    # Three standard errors of a share counted over this many runs.
    assert alarms / runs <= most + 3 * np.sqrt(most / runs)


def test_what_evidence_is_worth_is_said_in_words() -> None:
    assert chance_of(0.01, 8.04) == (
        "against 8.04 needed, expected by chance once in 10,000 healthy records of a role"
    )
    assert chance_of(1.0, 0.0) == ""
