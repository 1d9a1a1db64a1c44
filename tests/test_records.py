import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.records import Stat, StepRecord, summarise
from roledrift.sums import Key, Mean, Moments


def test_lookups_say_none_for_what_was_not_measured() -> None:
    record = StepRecord(3, groups={"generator": {"length": Stat(2, 5.0)}})
    assert record.stat("generator", "length") == Stat(2, 5.0)
    assert record.mean("generator", "length") == 5.0
    assert record.mean("generator", "chi2") is None
    assert record.mean("aggregator", "length") is None


def test_summarise_sorts_groups_and_names() -> None:
    sums = {Key("b", "y"): Mean(2, 3.0), Key("a", "z"): Mean(1, 1.0), Key("a", "x"): Mean(1, 4.0)}
    assert summarise(sums) == {
        "a": {"x": Stat(1, 4.0), "z": Stat(1, 1.0)},
        "b": {"y": Stat(2, 1.5)},
    }
    assert [list(stats) for stats in summarise(sums).values()] == [["x", "z"], ["y"]]


rows = st.lists(st.integers(0, 10_000), min_size=1, max_size=50)


@given(rows)
def test_moments_become_mean_spread_and_range(values: list[int]) -> None:
    stat = summarise({Key("g", "s"): Moments.of(np.array(values))})["g"]["s"]
    assert stat.n == len(values)
    assert stat.mean == pytest.approx(np.mean(values))
    assert stat.sd == pytest.approx(np.std(values), rel=1e-6, abs=0.02)
    assert (stat.low, stat.high) == (min(values), max(values))
    assert stat.p50 is None


@given(st.lists(st.integers(0, 128), min_size=1, max_size=50))
def test_quantiles_are_exact_for_short_lengths(values: list[int]) -> None:
    stat = summarise({Key("g", "s"): Moments.of(np.array(values), quantiles=True)})["g"]["s"]
    for share, got in ((0.05, stat.p05), (0.5, stat.p50), (0.95, stat.p95)):
        assert got == np.quantile(values, share, method="inverted_cdf")


@pytest.mark.parametrize("empty", [Mean(0, 0.0), Moments.of(np.array([]))])
def test_nothing_seen_is_nan_not_zero(empty: Mean | Moments) -> None:
    stat = summarise({Key("g", "s"): empty})["g"]["s"]
    assert stat.n == 0
    assert math.isnan(stat.mean)
    assert (stat.sd, stat.low) == (None, None)


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_non_finite_rows_show(odd: float) -> None:
    with np.errstate(invalid="ignore"):
        stat = summarise({Key("g", "s"): Moments.of(np.array([1.0, odd]))})["g"]["s"]
    assert not math.isfinite(stat.mean)
    assert stat.sd is not None
    assert math.isnan(stat.sd)
    assert stat.high is not None
    assert not math.isfinite(stat.high)
