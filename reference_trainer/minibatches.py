"""Which rows of an iteration share an optimizer step."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

import torch

from reference_trainer.episodes import Span
from reference_trainer.ranks import Ranks, own_rows
from reference_trainer.scoring import Batch, collate

Order = Literal["shuffled", "balanced", "by_role"]
"""How rows get into mini-batches: at random; at random with every role spread evenly over the
mini-batches; or one role after another, so that mini-batches hold mostly one role (a control: a
shared policy then gets one role's gradient after the other's)."""


def split(spans: Sequence[Span], *, count: int, order: Order, seed: int) -> list[list[Span]]:
    """``count`` mini-batches of nearly equal size.

    Rows are shuffled, not sorted by length: length is role, and a mini-batch of one role would give
    the shared policy one role's gradient after the other's.

    Args:
        spans: At least ``count`` rows of one policy.
        count: Number of mini-batches.
        order: See :data:`Order`. ``balanced`` sizes differ by up to the number of roles.
        seed: Of the shuffle.
    """
    rows = list(spans)
    random.Random(seed).shuffle(rows)
    if order == "shuffled":
        return _cut(rows, count)
    roles = sorted({span.role for span in rows})
    parts = [[span for span in rows if span.role == role] for role in roles]
    if order == "by_role":
        return _cut([span for part in parts for span in part], count)
    dealt = [_cut(part, count) for part in parts]
    batches = [[span for part in dealt for span in part[k]] for k in range(count)]
    return [batch for batch in batches if batch]


def _cut(rows: Sequence[Span], count: int) -> list[list[Span]]:
    bounds = [len(rows) * i // count for i in range(count + 1)]
    return [list(rows[start:end]) for start, end in pairwise(bounds)]


def micro_batches(
    spans: Sequence[Span], *, rows: int, tokens: int = 0, packed: bool = False
) -> list[list[Span]]:
    """Rows of one role and similar length: the shorter half of a role is not padded to the longer.

    A smaller batch also stays in the processor's cache; both count for more than the calls do.

    Args:
        spans: Rows.
        rows: Most rows of one.
        tokens: Most tokens of one, padding included; 0 for any number. A longer row is alone.
        packed: Rows are packed: there is no padding.
    """
    result = []
    for role in sorted({span.role for span in spans}):
        own = sorted((span for span in spans if span.role == role), key=_length)
        for part in _cut(own, -(-len(own) // rows)):
            result += _within(part, tokens, packed) if tokens else [part]
    return result


def _within(spans: Sequence[Span], tokens: int, packed: bool) -> list[list[Span]]:
    """Cut rows, the shortest first, where the budget of tokens would be passed."""
    parts: list[list[Span]] = []
    used = 0
    for span in spans:
        length = _length(span)
        used = used + length if packed else (len(parts[-1]) + 1 if parts else 1) * length
        if not parts or used > tokens:
            parts.append([])
            used = length
        parts[-1].append(span)
    return parts


def share(
    spans: Sequence[Span], *, pad_id: int, ranks: Ranks, device: torch.device, packed: bool = False
) -> tuple[Batch, bool]:
    """This rank's rows on its device, and whether they count.

    A rank without rows takes one of the others' that counts for nothing: every rank then has the
    same forwards and backwards, in which a model in parts is gathered, and a gradient to add.
    """
    if own := own_rows(spans, ranks):
        return collate(own, pad_id=pad_id, packed=packed).to(device), True
    batch = collate(spans[:1], pad_id=pad_id, packed=packed).to(device)
    return replace(batch, mask_BC=torch.zeros_like(batch.mask_BC)), False


def _length(span: Span) -> int:
    return len(span.prompt_ids) + len(span.output_ids)
