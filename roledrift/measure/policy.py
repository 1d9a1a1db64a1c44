"""How sure a role's policy is and how far it has moved, from log-probabilities.

The formulas are those of the paper's code (verl's rollout correction metrics), with sums pooled
over all tokens of a step instead of averaged over micro-batches. ``a`` is the log-probability of a
token under the policy in question, ``b`` under the one it is compared with, ``d = a - b``; ``A``
and ``B`` are their means over a span.
"""

from __future__ import annotations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Column, Columns, PerSpan, Pooled, Ratios, given, span_probe
from roledrift.spans import Bools, Comparison, Floats, Ints, SpanTable

_CLAMP = 20.0


@span_probe("scored_N", "nll_N")
def perplexity(spans: SpanTable) -> Columns:
    """``ppl``: mean over spans of ``exp(nll per token)``; not the exp of the mean."""
    scored_N = given(spans.scored_N)
    with np.errstate(over="ignore"):
        ppl_N = np.exp(_per_token(given(spans.nll_N), scored_N))
    return {"ppl": PerSpan(ppl_N, scored_N > 0)}


@span_probe("scored_N", "entropy_N")
def entropy(spans: SpanTable) -> Columns:
    """``entropy``: nats per token, pooled over tokens."""
    return {"entropy": Pooled(given(spans.scored_N), given(spans.entropy_N))}


@span_probe("scored_N", "clipped_N")
def clipping(spans: SpanTable) -> Columns:
    """``clip_fraction``: share of tokens whose clipped loss was active, pooled over tokens."""
    return {"clip_fraction": Pooled(given(spans.scored_N), given(spans.clipped_N))}


@span_probe("nonfinite_N")
def nonfinite(spans: SpanTable) -> Columns:
    """``nonfinite``: trainable tokens per span whose log-probability or entropy was not finite."""
    return {"nonfinite": PerSpan(given(spans.nonfinite_N))}


@span_probe()
def comparisons(spans: SpanTable) -> Columns:
    """How far apart two policies are, for each kind ``K`` of comparison that the spans hold.

    ==================== ================================================================
    ``K.chi2``           ``E[rho²] - 1`` over tokens, ``rho = exp(clip(d, -20, 20))``; an
                         estimate that may be below 0
    ``K.k1``             mean of ``b - a`` over tokens: estimates KL(b ‖ a), either sign
    ``K.k3``             mean of ``exp(d) - d - 1`` over tokens: estimates the same, >= 0
    ``K.chi2_seq``       mean over spans of ``exp(2 clip(sum of d, -20, 20)) - 1``
    ``K.training_ppl``   mean over spans of ``exp(-A)``; ``K.training_log_ppl`` of ``-A``
    ``K.behind_ppl``     mean over spans of ``exp(-B)``: the rollout perplexity for ``rollout``
    ``K.ppl_ratio``      mean over spans of ``exp(B - A)``
    ``K.log_ppl_diff``   mean over spans of ``B - A``; ``K.log_ppl_abs_diff`` of ``|B - A|``
    ``K.peak``           moments over spans of the largest ``|d|``; the maximum is ``high``
    ``K.ratio``          ``rho = exp(d)`` over tokens: mean, sd, exact ``low`` and ``high``, and
                         ``p01``, ``p50``, ``p99`` from bins
    ``K.refused``        instead of all these, if the two sides are at different temperatures:
                         1, over the number of spans refused
    ==================== ================================================================
    """
    columns: dict[str, Column] = {}
    for comparison in spans.comparisons:
        measured = _moved(comparison) if comparison.comparable else _refused(comparison)
        columns |= {f"{comparison.kind}.{name}": column for name, column in measured.items()}
    return columns


def _refused(pair: Comparison) -> Columns:
    every_N: Bools = np.ones(len(pair.tokens_N), dtype=np.bool_)
    return {"refused": Pooled(every_N, every_N)}


def _moved(pair: Comparison) -> Columns:
    valid_N = pair.tokens_N > 0
    mean_a_N = _per_token(pair.a_N, pair.tokens_N)
    mean_b_N = _per_token(pair.b_N, pair.tokens_N)
    whole_N = np.clip(pair.a_N - pair.b_N, -_CLAMP, _CLAMP)
    with np.errstate(over="ignore"):
        rows = {
            "chi2_seq": np.expm1(2 * whole_N),
            "ppl_ratio": np.exp(mean_b_N - mean_a_N),
            "training_ppl": np.exp(-mean_a_N),
            "behind_ppl": np.exp(-mean_b_N),
            "training_log_ppl": -mean_a_N,
            "log_ppl_diff": mean_b_N - mean_a_N,
            "log_ppl_abs_diff": np.abs(mean_b_N - mean_a_N),
            "peak": pair.peak_N,
        }
    pooled = {"chi2": pair.chi2_N, "k1": pair.b_N - pair.a_N, "k3": pair.k3_N}
    return {
        **_ratios(pair),
        **{name: Pooled(pair.tokens_N, totals_N) for name, totals_N in pooled.items()},
        **{name: PerSpan(values_N, valid_N) for name, values_N in rows.items()},
    }


def _ratios(pair: Comparison) -> Columns:
    if pair.low_N is None or pair.high_N is None or pair.bins_N is None:
        return {}
    # exp(d) = (exp(d) - d - 1) + d + 1, and rho² = (rho² - 1) + 1: the sums are there already.
    totals_N = pair.k3_N + (pair.a_N - pair.b_N) + pair.tokens_N
    # The squares are those of a clamped d, as the paper's chi2 is; beyond the clamp nobody knows
    # them, and a spread from them would read 0 where it is largest.
    squares_N = np.where(pair.high_N > _CLAMP, np.inf, pair.chi2_N + pair.tokens_N)
    return {
        "ratio": Ratios(
            pair.tokens_N, totals_N, squares_N, pair.low_N, pair.high_N, bins_N=pair.bins_N
        )
    }


def _per_token(totals_N: Floats, tokens_N: Ints) -> Floats:
    means_N: Floats = totals_N / np.maximum(tokens_N, 1)
    return means_N


_COMPARE = "RoleBatch.rescored after the optimizer step ([rescore] rows_per_role above 0)"
_ROLLOUT = "rollout_logp_BT in RoleBatch"
_K3 = (
    "mean over tokens of exp(d) - d - 1, an estimate of the KL divergence that is never negative; "
)
_CHI2 = "mean over tokens of exp(d)² - 1, d clipped to ±20; "
_UPDATE = "d is taken between after and before the optimizer step, on re-scored answers"
_ENGINE = "d is taken between the trainer and the rollout engine"

CARDS = (
    ProbeCard(
        "perplexity",
        perplexity,
        (
            Statistic(
                "ppl",
                "Perplexity",
                "mean over answers",
                formula="mean over answers of exp(mean negative log-probability per token)",
                healthy="level or slowly falling",
                supply="logp_BT in RoleBatch",
                order=3,
            ),
        ),
    ),
    ProbeCard(
        "entropy",
        entropy,
        (
            Statistic(
                "entropy",
                "Entropy",
                "nats per token",
                formula="sum over all tokens of a role divided by their number",
                healthy=(
                    "falls slowly; a sudden fall is a policy that collapses, a rise one that "
                    "dissolves"
                ),
                supply="entropy_BT in RoleBatch",
                order=2,
            ),
        ),
    ),
    ProbeCard(
        "clipping",
        clipping,
        (
            Statistic(
                "clip_fraction",
                "Clipped tokens",
                "share of tokens",
                formula="tokens whose clipped loss is active divided by all tokens of a role",
                healthy="small; 0 when every batch is used once",
                supply="old_logp_BT and clip in RoleBatch",
                share=True,
                order=10,
            ),
        ),
    ),
    ProbeCard("nonfinite", nonfinite),
    ProbeCard(
        "comparisons",
        comparisons,
        (
            Statistic(
                "update.k3",
                "Movement per update (k3)",
                "nats per token",
                formula=_K3 + _UPDATE,
                healthy="level and similar for all roles that share a policy",
                supply=_COMPARE,
                log=True,
                order=4,
            ),
            Statistic(
                "update.chi2",
                "Movement per update (chi²)",
                "per token",
                formula=_CHI2 + _UPDATE,
                healthy="level; it reacts to few tokens with large ratios before k3 does",
                supply=_COMPARE,
                log=True,
                order=5,
            ),
            Statistic(
                "rollout.k3",
                "Trainer against rollout engine (k3)",
                "nats per token",
                formula=_K3 + _ENGINE,
                healthy="small and level",
                supply=_ROLLOUT,
                log=True,
                order=6,
            ),
            Statistic(
                "rollout.chi2",
                "Trainer against rollout engine (chi²)",
                "per token",
                formula=_CHI2 + _ENGINE,
                healthy="small and level",
                supply=_ROLLOUT,
                log=True,
                order=7,
            ),
            Statistic(
                "old.k3",
                "Policy against start of iteration (k3)",
                "nats per token",
                formula=_K3 + "d is taken between the policy and that of the iteration's start",
                healthy="small; exactly 0 when every batch is used once",
                supply="old_logp_BT in RoleBatch",
                log=True,
                order=8,
            ),
            Statistic(
                "reference.k3",
                "Distance to the reference (k3)",
                "nats per token",
                formula=_K3 + "d is taken between the policy and the frozen reference",
                healthy="grows slowly and bends over",
                supply="reference_logp_BT in RoleBatch",
                log=True,
                order=9,
            ),
            Statistic(
                "rollout.training_ppl",
                "Perplexity under the trainer",
                "mean over answers",
                formula="mean over answers of exp(mean negative log-probability per token)",
                chart=False,
            ),
            Statistic(
                "old.training_ppl",
                "Perplexity at the start of the iteration",
                "mean over answers",
                formula="mean over answers of exp(mean negative log-probability per token)",
                chart=False,
            ),
        ),
    ),
)
