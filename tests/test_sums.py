"""The laws that everything measured rests on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from roledrift.records import summarise
from roledrift.sums import (
    RATIO_BINS,
    RATIO_EDGES,
    Distinct,
    Gram,
    Histogram,
    Key,
    Mean,
    Moments,
    Profile,
    add,
)

WHOLE = hnp.arrays(np.int64, st.integers(0, 60), elements=st.integers(0, 40_000))
REAL = hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(-1e6, 1e6))


@given(WHOLE, WHOLE)
def test_histograms_add(a, b):
    assert Histogram.of(a) + Histogram.of(b) == Histogram.of(np.concatenate([a, b]))


@given(
    hnp.arrays(np.int64, st.integers(1, 80), elements=st.integers(0, 200_000)),
    st.sampled_from([0.0, 0.05, 0.5, 0.95, 1.0]),
)
def test_quantile_is_exact_up_to_128_and_close_above(values, q):
    found = Histogram.of(values).quantile(q)
    true = float(np.sort(values)[max(math.ceil(q * len(values)) - 1, 0)])
    if true <= 128:
        assert found == true
    else:
        # Half a bin, and half a token because lengths are whole.
        assert abs(found - true) <= 0.0219 * true + 0.5


def test_quantile_of_nothing_is_nan():
    assert math.isnan(Histogram().quantile(0.5))


def test_histogram_bins_never_move():
    # Bins are written to disk by one version and added by another.
    assert Histogram.of(np.array([0, 1, 128, 129, 256, 257, 5120])).counts == {
        0: 1,
        1: 1,
        128: 1,
        129: 1,
        145: 2,
        214: 1,
    }


@given(REAL, REAL)
def test_moments_add(a, b):
    both, parts = Moments.of(np.concatenate([a, b])), Moments.of(a) + Moments.of(b)
    assert (parts.n, parts.low, parts.high) == (both.n, both.low, both.high)
    assert parts.total == pytest.approx(both.total, abs=1e-3)
    assert parts.square == pytest.approx(both.square, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_nan_survives_addition_in_either_order(order):
    parts = [Moments.of(np.array([1.0, math.nan])), Moments.of(np.array([2.0, 3.0]))]
    total = parts[order[0]] + parts[order[1]]
    assert total.n == 4
    assert all(math.isnan(x) for x in (total.total, total.square, total.low, total.high))


def test_bins_are_dropped_where_one_side_has_none():
    values = np.array([1, 2])
    assert (Moments.of(values, quantiles=True) + Moments.of(values)).bins is None


@given(st.permutations(["generator", "aggregator", "judge"]))
def test_gram_adds_by_label_in_any_order(labels):
    products = {(a, b): float(len(a) * len(b)) for a in labels for b in labels}
    gram = Gram(tuple(labels), np.array([[products[a, b] for b in labels] for a in labels]))
    first = Gram(("generator", "aggregator"), np.array([[81.0, 90.0], [90.0, 100.0]]))
    total = first + gram
    assert total.n == 2
    at = total.labels.index
    assert total.products[at("generator"), at("aggregator")] == 180.0
    assert total.products[at("judge"), at("judge")] == 25.0
    assert total.products[at("judge"), at("generator")] == 45.0


def test_gram_refuses_a_matrix_of_another_size():
    with pytest.raises(ValueError, match="2 labels need"):
        Gram(("a", "b"), np.zeros((3, 3)))


@settings(max_examples=50)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from([Key("a", "x"), Key("a", "y"), Key("*", "x")]),
            st.builds(Mean, n=st.integers(0, 9), total=st.integers(-9, 9)),
        ),
        max_size=5,
    )
)
def test_sums_add_key_by_key_in_any_grouping(parts):
    whole = add(parts)
    assert whole == add([add(parts[:2]), add(parts[2:])])
    for key, value in whole.items():
        there = [part[key] for part in parts if key in part]
        assert value == Mean(sum(one.n for one in there), sum(one.total for one in there))


def test_different_kinds_of_sum_do_not_add():
    key = Key("generator", "length")
    with pytest.raises(TypeError, match="generator:length"):
        add([{key: Mean(1, 1)}, {key: Moments.of(np.array([1.0]))}])


def test_summarise_gives_mean_spread_range_and_quantiles():
    values = np.array([2, 4, 4, 6])
    stats = summarise(
        {
            Key("a", "length"): Moments.of(values, quantiles=True),
            Key("a", "chi2"): Mean(10, 5),
            Key("a", "nothing"): Mean(0, 0),
        }
    )["a"]
    length = stats["length"]
    assert (length.n, length.mean, length.low, length.high) == (4, 4.0, 2.0, 6.0)
    assert length.sd == pytest.approx(math.sqrt(2))
    assert (length.p05, length.p50, length.p95) == (2.0, 4.0, 6.0)
    assert stats["chi2"].mean == 0.5
    assert stats["chi2"].sd is None
    assert math.isnan(stats["nothing"].mean)


def ratios(d):
    edges = [*(-edge for edge in reversed(RATIO_EDGES)), *RATIO_EDGES]
    return Histogram.of_ratios(np.bincount(np.searchsorted(edges, d), minlength=RATIO_BINS))


LOG_RATIOS = hnp.arrays(np.float64, st.integers(0, 60), elements=st.floats(-12, 12))


@given(LOG_RATIOS, LOG_RATIOS)
def test_histograms_of_ratios_add(a, b):
    assert ratios(a) + ratios(b) == ratios(np.concatenate([a, b]))


@given(
    hnp.arrays(np.float64, st.integers(1, 80), elements=st.floats(-9.9, 9.9)),
    st.sampled_from([0.0, 0.01, 0.5, 0.99, 1.0]),
)
def test_quantiles_of_ratios_are_close(d, q):
    found = ratios(d).quantile(q)
    true = float(np.sort(d)[max(math.ceil(q * len(d)) - 1, 0)])
    assert math.log(found) == pytest.approx(true, rel=0.22, abs=1.01e-4)


def test_ratio_bins_never_move():
    assert RATIO_BINS == 63
    assert RATIO_EDGES[0] == 1e-4
    assert RATIO_EDGES[30] == pytest.approx(10)
    d = np.array([-50.0, -0.11, 0.0, 5e-5, 0.11, 0.2, 50.0])
    assert ratios(d).counts == {0: 1, 12: 1, 31: 2, 50: 1, 51: 1, 62: 1}


def test_ratios_and_counts_do_not_mix():
    with pytest.raises(TypeError, match="cannot add bins of ratios to bins of counts"):
        Histogram.of(np.array([1])) + ratios(np.array([0.1]))


def test_quantiles_of_ratios_stay_between_the_extremes():
    rho = np.exp([0.1, 0.1, 0.1])
    moments = Moments.of(rho)
    moments = Moments(3, moments.total, moments.square, rho[0], rho[0], ratios(np.log(rho)))
    stat = summarise({Key("*", "old.ratio"): moments})["*"]["old.ratio"]
    assert stat.p01 == stat.p50 == stat.p99 == stat.high == rho[0]
    assert stat.p05 is stat.p95 is None


@given(st.lists(st.integers(0, 9)), st.lists(st.integers(0, 9)))
def test_distinct_things_add(a, b):
    def of(values):
        return Distinct(len(values), frozenset(values))

    assert of(a) + of(b) == of(a + b)
    key = Key("*", "openers")
    assert summarise(add([{key: of(a)}, {key: of(b)}]))["*"]["openers"].mean == len({*a, *b})


def test_profiles_add_and_finish_as_means_over_texts():
    key = Key("generator", "words")
    parts = [{key: Profile(1, 4, (1.0, 0.0))}, {key: Profile(3, 8, (0.5, 2.5))}]
    stat = summarise(add(parts))["generator"]["words"]
    assert (stat.n, stat.mean, stat.shares) == (4, 3.0, (0.375, 0.625))
    with pytest.raises(TypeError, match="cannot add Mean to Profile"):
        add([parts[0], {key: Mean(1, 1)}])
