"""Rows that are there twice: padding that was not masked, or a batch handed over again."""

from __future__ import annotations

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, Pooled, span_probe
from roledrift.spans import SpanTable


@span_probe("episode_N", "slot_N", "turn_N", "tokens_N")
def duplicates(spans: SpanTable) -> Columns:
    """``duplicates``: share of spans that repeat one with the same address and length.

    The address is role, problem (where known), episode, slot and turn. Trainers pad a batch to the
    number of devices with copies of its first rows; where the copies are not masked they carry
    gradient. A table must not cut through an episode, or its copies are lost.
    """
    known = (spans.prompt_N, spans.episode_N, spans.slot_N, spans.turn_N, spans.tokens_N)
    columns = [spans.role_N, *(column for column in known if column is not None)]
    _, first_G = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    repeats_N = np.ones(len(spans), dtype=np.bool_)
    repeats_N[first_G] = False
    return {"duplicates": Pooled(np.ones(len(spans)), repeats_N)}


CARDS = (
    ProbeCard(
        "duplicates",
        duplicates,
        (
            Statistic(
                "duplicates",
                "Duplicate rows",
                "share of rows",
                formula="share of spans that repeat role, problem, episode, slot, turn and length",
                words="share of rows that are there twice",
                share=True,
                chart=False,
            ),
        ),
    ),
)
