"""Group-relative policy optimisation as pure functions: groups, advantages, the clipped loss.

Formulas follow Shao et al. 2024 (GRPO), with the asymmetric clip of DAPO (Yu et al. 2025) and the
dual clip of Ye et al. 2020.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_trainer.episodes import Episode

Grouping = Literal["slot", "role"]
"""Which spans of a problem are compared: each slot over the rollouts, or a whole role."""

_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class Clip:
    """Bounds of the probability ratio.

    Attributes:
        low: The ratio is clipped at ``1 - low``.
        high: The ratio is clipped at ``1 + high``.
        dual: With a negative advantage the loss per token is at most ``dual * |advantage|``.
    """

    low: float = 0.2
    high: float = 0.28
    dual: float = 3.0


@dataclass(frozen=True, slots=True)
class LossTerms:
    """The loss of some rows and what happened in it.

    Attributes:
        loss: Sum over rows of the row means, divided by ``rows_in_batch``: a scalar with a
            gradient.
        clipped_BC: True where the clipped branch was the larger one.
    """

    loss: Tensor
    clipped_BC: Tensor


def group_keys(episodes: Sequence[Episode], *, by: Grouping = "slot") -> list[Hashable]:
    """The GRPO group of every span, episode by episode, in span order."""
    return [
        (episode.problem, span.role, span.slot if by == "slot" else -1)
        for episode in episodes
        for span in episode.spans
    ]


def advantages(rewards: Sequence[float], groups: Sequence[Hashable]) -> NDArray[np.float64]:
    """``(reward - group mean) / (group standard deviation + 1e-6)``, deviation with ``ddof=1``.

    A group of one keeps its reward as it is; a group whose rewards are all equal gets exactly 0.

    Args:
        rewards: One per span.
        groups: One per span, any hashable.

    Returns:
        One advantage per span, ``(N,)``.
    """
    values = np.asarray(rewards, dtype=np.float64)
    members: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    result = np.zeros_like(values)
    for rows in members.values():
        own = values[rows]
        if len(rows) == 1:
            result[rows] = own
        elif np.ptp(own) > 0:
            result[rows] = (own - own.mean()) / (own.std(ddof=1) + _EPSILON)
    return result


def clipped_loss(
    new_BC: Tensor,
    old_BC: Tensor,
    *,
    advantage_B: Tensor,
    mask_BC: Tensor,
    clip: Clip,
    rows_in_batch: int,
) -> LossTerms:
    """The clipped surrogate, mean over a row's tokens, then over rows.

    Dividing by the rows of the whole mini-batch (and not of this micro-batch) makes the gradients
    of micro-batches add up to that of the mini-batch.

    Args:
        new_BC: Log-probabilities under the current weights, with a gradient.
        old_BC: Log-probabilities at the start of the iteration.
        advantage_B: One per row.
        mask_BC: True at output tokens.
        clip: Bounds.
        rows_in_batch: Rows of the mini-batch that these rows are part of.
    """
    ratio_BC = (new_BC - old_BC).clamp(-20.0, 20.0).exp()
    advantage_BC = advantage_B[:, None].expand_as(ratio_BC)
    plain_BC = -advantage_BC * ratio_BC
    bounded_BC = -advantage_BC * ratio_BC.clamp(1.0 - clip.low, 1.0 + clip.high)
    worse_BC = torch.maximum(plain_BC, bounded_BC)
    capped_BC = torch.where(
        advantage_BC < 0, torch.minimum(worse_BC, -clip.dual * advantage_BC), worse_BC
    )
    mask = mask_BC.to(capped_BC.dtype)
    row_B = (capped_BC * mask).sum(1) / mask.sum(1).clamp(min=1.0)
    return LossTerms(row_B.sum() / rows_in_batch, (bounded_BC > plain_BC) & mask_BC)
