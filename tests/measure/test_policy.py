from __future__ import annotations

import math

import numpy as np
import pytest

from roledrift.measure.policy import clipping, comparisons, entropy, nonfinite, perplexity
from roledrift.records import summarise
from roledrift.spans import Comparison, SpanTable
from roledrift.sums import RATIO_BINS, Key, Mean
from roledrift.workflow import VOTING

# The two rows of the golden vectors, as sums over their tokens.
A = [[-0.1, -0.5, -2.0], [-0.3, -0.05]]
B = [[-0.2, -0.4, -1.5], [-0.3, -0.1]]


def sums(function):
    return np.array(
        [sum(function(a, b) for a, b in zip(*rows, strict=True)) for rows in zip(A, B, strict=True)]
    )


def golden(**facts):
    return Comparison(
        "rollout",
        np.array([3, 2]),
        sums(lambda a, b: a),
        sums(lambda a, b: b),
        sums(lambda a, b: math.exp(2 * (a - b)) - 1),
        sums(lambda a, b: math.exp(a - b) - (a - b) - 1),
        np.array([0.5, 0.05]),
        **facts,
    )


def spans(*pairs, **columns):
    return SpanTable(VOTING.role_names, np.array([0, 1]), comparisons=pairs, **columns)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chi2", -0.0973632),
        ("k1", 0.09),
        ("k3", 0.0235620),
        ("training_ppl", 1.7851070),
        ("behind_ppl", 1.6175778),
        ("ppl_ratio", 1.0783352),
        ("chi2_seq", -0.2634748),
        ("training_log_ppl", 0.5208333),
        ("log_ppl_diff", 0.0708333),
        ("log_ppl_abs_diff", 0.0958333),
    ],
)
def test_golden_vectors(name, value):
    stats = summarise(comparisons(VOTING).measure(spans(golden())))
    assert stats["*"][f"rollout.{name}"].mean == pytest.approx(value, abs=1e-6)


def test_token_statistics_pool_tokens_and_row_statistics_weigh_rows_equally():
    stats = summarise(comparisons(VOTING).measure(spans(golden())))
    roles = stats["generator"], stats["aggregator"]
    for name in ("chi2", "k1", "k3"):
        pooled = (3 * roles[0][f"rollout.{name}"].mean + 2 * roles[1][f"rollout.{name}"].mean) / 5
        assert stats["*"][f"rollout.{name}"].mean == pytest.approx(pooled)
        assert stats["*"][f"rollout.{name}"].n == 5
    for name in ("training_ppl", "chi2_seq"):
        middle = (roles[0][f"rollout.{name}"].mean + roles[1][f"rollout.{name}"].mean) / 2
        assert stats["*"][f"rollout.{name}"].mean == pytest.approx(middle)
        assert stats["*"][f"rollout.{name}"].n == 2


def test_the_largest_log_ratio_is_the_high_of_peak():
    peak = summarise(comparisons(VOTING).measure(spans(golden())))["*"]["rollout.peak"]
    assert (peak.low, peak.high) == (0.05, 0.5)


def test_two_temperatures_are_refused_and_counted():
    pair = golden(temperature_a=0.7, temperature_b=1.0)
    found = comparisons(VOTING).measure(spans(pair))
    assert {key.name for key in found} == {"rollout.refused"}
    assert found[Key("*", "rollout.refused")] == Mean(2, 2)
    assert found[Key("generator", "rollout.refused")] == Mean(1, 1)


def test_spans_without_tokens_do_not_count():
    zero = np.zeros(2)
    pair = Comparison("old", np.array([0, 2]), *(np.array([0.0, -1.0]),) * 2, zero, zero, zero)
    found = summarise(comparisons(VOTING).measure(spans(pair)))
    assert "generator" not in found
    assert found["*"]["old.training_ppl"].n == 1
    assert found["*"]["old.training_ppl"].mean == pytest.approx(math.exp(0.5))


def test_a_collapsed_policy_gives_infinity_and_no_warning(recwarn):
    pair = Comparison(
        "old", np.array([1, 1]), np.array([-900.0, -1.0]), *(np.array([-1.0, -1.0]),) * 4
    )
    found = summarise(comparisons(VOTING).measure(spans(pair)))
    assert found["generator"]["old.training_ppl"].mean == math.inf
    assert not recwarn.list


def test_perplexity_is_a_mean_of_perplexities():
    table = spans(scored_N=np.array([3, 2]), nll_N=np.array([2.6, 0.35]))
    stats = summarise(perplexity(VOTING).measure(table))
    assert stats["*"]["ppl"].mean == pytest.approx(1.7851070, abs=1e-6)


def test_entropy_and_clipping_pool_tokens():
    table = spans(
        scored_N=np.array([3, 1]), entropy_N=np.array([3.0, 2.0]), clipped_N=np.array([1, 0])
    )
    assert entropy(VOTING).measure(table)[Key("*", "entropy")] == Mean(4, 5)
    assert clipping(VOTING).measure(table)[Key("*", "clip_fraction")] == Mean(4, 1)


def test_nonfinite_counts_tokens_per_span():
    stat = summarise(nonfinite(VOTING).measure(spans(nonfinite_N=np.array([0, 6]))))["*"]
    assert (stat["nonfinite"].mean, stat["nonfinite"].high) == (3.0, 6.0)


@pytest.mark.parametrize("largest", [19.0, 29.0])
def test_beyond_the_clamp_the_spread_of_ratios_is_not_known(largest):
    """It read 0 where it was 2e12: the squares are clamped, the mean is not."""
    d = np.array([0.0, largest])
    pair = Comparison(
        "update",
        np.array([2, 2]),
        np.full(2, d.sum()),
        np.zeros(2),
        np.full(2, np.expm1(2 * np.minimum(d, 20)).sum()),
        np.full(2, (np.expm1(d) - d).sum()),
        np.full(2, largest),
        low_N=np.zeros(2),
        high_N=np.full(2, largest),
        bins_N=np.zeros((2, RATIO_BINS), dtype=np.int64),
    )
    ratio = summarise(comparisons(VOTING).measure(spans(pair)))["*"]["update.ratio"]
    assert ratio.mean == pytest.approx((math.exp(largest) + 1) / 2)
    if largest < 20:
        assert ratio.sd == pytest.approx(math.exp(largest) / 2, rel=1e-6)
    else:
        assert math.isnan(ratio.sd)
