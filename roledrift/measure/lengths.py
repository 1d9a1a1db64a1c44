"""How long outputs are and how many were cut."""

from __future__ import annotations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, PerSpan, Pooled, SpanProbe
from roledrift.spans import SpanTable
from roledrift.workflow import Workflow


def lengths(workflow: Workflow) -> SpanProbe:
    """``length``: trainable tokens per span, with quantiles."""
    return SpanProbe("lengths", frozenset({"tokens_N"}), workflow, _lengths)


def truncation(workflow: Workflow) -> SpanProbe:
    """``truncated``: share of spans that the length limit cut."""
    return SpanProbe("truncation", frozenset({"truncated_N"}), workflow, _truncation)


def chars(workflow: Workflow) -> SpanProbe:
    """``chars``: characters per span with text, with quantiles."""
    return SpanProbe("chars", frozenset({"text_N"}), workflow, _chars)


def _lengths(spans: SpanTable) -> Columns:
    if spans.tokens_N is None:
        return {}
    everyone_N = np.ones(len(spans), dtype=np.bool_)
    return {"length": PerSpan(spans.tokens_N, everyone_N, quantiles=True)}


def _truncation(spans: SpanTable) -> Columns:
    if spans.truncated_N is None:
        return {}
    return {"truncated": Pooled(np.ones(len(spans)), spans.truncated_N)}


def _chars(spans: SpanTable) -> Columns:
    text_N = spans.text_N or (None,) * len(spans)
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
