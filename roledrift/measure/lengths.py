"""How long outputs are and how many were cut."""

from __future__ import annotations

import numpy as np

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
