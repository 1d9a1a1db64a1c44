import numpy as np
import pytest

from benchmarks.detection.bootstrap import BLOCK, SETTLED, lengthened
from benchmarks.detection.page import filled
from benchmarks.detection.simulations import cells, healthy
from benchmarks.detection.simulations.noise import Noise
from benchmarks.detection.simulations.synthesis import simulate
from benchmarks.detection.variants import scaled, symptoms_alone
from roledrift import StepRecord

PLAN = healthy.healthy_plan(healthy.Condition("", steps=60))


@pytest.fixture(scope="module")
def records() -> list[StepRecord]:
    return simulate(PLAN, 0)


def test_noise_has_the_stated_correlation_and_spread() -> None:
    series = Noise(0.9).draw(np.random.default_rng(0), 20_000)
    assert np.std(series) == pytest.approx(1, abs=0.1)
    assert np.corrcoef(series[1:], series[:-1])[0, 1] == pytest.approx(0.9, abs=0.02)
    doubled = Noise(spread="doubles").draw(np.random.default_rng(0), 20_000)
    assert np.std(doubled[10_000:]) / np.std(doubled[:10_000]) == pytest.approx(2, abs=0.1)


def test_a_simulated_run_has_the_levels_of_the_recorded_ones(records: list[StepRecord]) -> None:
    assert [one.step for one in records] == list(range(1, 61))
    moved = [one.mean("generator", "update.k3") for one in records]
    assert np.median(np.array(moved, dtype=float)) == pytest.approx(3e-4, rel=0.5)
    assert all(one.mean("generator", "reward_bias") == 0 for one in records)
    marks = [one.solved for one in records if one.solved]
    assert len(marks) == 60 // PLAN.validation
    assert {len(one) for one in marks} == {PLAN.validated}
    assert simulate(PLAN, 0) == records


def test_validation_follows_the_accuracy_on_the_same_problems() -> None:
    trial = next(one for one in cells.falls(1) if "1000 validation" in one.cell)
    told = [one.totals["val_accuracy"] for one in simulate(trial.plan, 0) if one.solved]
    assert max(told) > 0.15
    assert told[-1] == pytest.approx(0.02, abs=0.02)


def test_what_is_paid_to_one_role_shows_in_its_bias_and_in_the_reward() -> None:
    trial = next(one for one in cells.sick_from_the_start(1) if "paid for length" in one.cell)
    record = simulate(trial.plan, 0)[50]
    assert (record.mean("aggregator", "reward_bias") or 0) > 0.1
    assert (record.mean("generator", "reward_bias") or 0) < 0
    assert record.totals["reward"] - record.totals["accuracy"] == pytest.approx(0.05)


def test_variants_change_what_they_say_and_nothing_else(records: list[StepRecord]) -> None:
    before, after = records[20], scaled(0.01)(records)[20]
    mean = before.mean("generator", "update.k3")
    assert mean is not None
    assert after.mean("generator", "update.k3") == pytest.approx(mean / 100)
    assert after.mean("generator", "length") == before.mean("generator", "length")
    bare = symptoms_alone(records)[20]
    assert "lr" in before.totals
    assert "lr" not in bare.totals
    assert bare.mean("generator", "updates") is None
    assert bare.totals["accuracy"] == before.totals["accuracy"]


def test_a_lengthened_run_keeps_its_start_and_repeats_blocks(records: list[StepRecord]) -> None:
    longer = lengthened(records[:34], 100, seed=1)
    assert [one.step for one in longer] == list(range(1, 101))
    assert longer[: SETTLED - 1] == records[: SETTLED - 1]
    known = [one.groups for one in records[:34]]
    places = [known.index(one.groups) for one in longer[SETTLED - 1 :]]
    blocks = [places[i : i + BLOCK] for i in range(0, len(places), BLOCK)]
    assert all(b == list(range(b[0], b[0] + len(b))) for b in blocks)


def test_the_page_has_a_place_for_every_part() -> None:
    text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb"
    assert filled(text, {"x": ["new"]}) == "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb"
    with pytest.raises(ValueError, match="no place for 'y'"):
        filled(text, {"y": []})
