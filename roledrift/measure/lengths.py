"""How long outputs are and how many were cut."""

from __future__ import annotations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, PerSpan, Pooled, given, span_probe
from roledrift.spans import SpanTable


@span_probe("tokens_N")
def lengths(spans: SpanTable) -> Columns:
    """``length``: trainable tokens per span, with quantiles."""
    return {"length": PerSpan(given(spans.tokens_N), quantiles=True)}


@span_probe("truncated_N")
def truncation(spans: SpanTable) -> Columns:
    """``truncated``: share of spans that the length limit cut."""
    return {"truncated": Pooled(np.ones(len(spans)), given(spans.truncated_N))}


@span_probe("text_N")
def chars(spans: SpanTable) -> Columns:
    """``chars``: characters per span with text, with quantiles."""
    text_N = given(spans.text_N)
    valid_N = np.array([text is not None for text in text_N], dtype=np.bool_)
    chars_N = np.array([len(text or "") for text in text_N], dtype=np.int64)
    return {"chars": PerSpan(chars_N, valid_N, quantiles=True)}


CARDS = (
    ProbeCard(
        "lengths",
        lengths,
        (
            Statistic(
                "length",
                "Response length",
                "tokens, mean",
                formula="mean over spans of their trainable tokens",
                healthy="level; a terse role stays at a few tokens",
                supply="mask_BT in RoleBatch with outputs=True",
                order=0,
            ),
        ),
    ),
    ProbeCard(
        "truncation",
        truncation,
        (
            Statistic(
                "truncated",
                "Truncated answers",
                "share of answers",
                formula="share of spans that the length limit cut off",
                healthy="near 0: a truncated answer cannot be graded",
                supply="truncated_B in RoleBatch",
                share=True,
                order=11,
            ),
        ),
    ),
    ProbeCard(
        "chars",
        chars,
        (
            Statistic(
                "chars",
                "Characters",
                "characters, mean",
                formula="mean over spans with text of their characters",
                chart=False,
            ),
        ),
    ),
)
