"""Group-relative policy optimisation as pure functions: groups, advantages, the clipped loss.

Formulas follow Shao et al. 2024 (GRPO), with the asymmetric clip and the token mean of DAPO (Yu et
al. 2025), the dual clip of Ye et al. 2020 and the constant denominator of Dr. GRPO (Liu et al.
2025).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from reference_trainer.episodes import Episode, Span

Grouping = Literal["slot", "role", "turn", "problem"]
"""Which spans of a problem are compared over its rollouts: those of one slot of a role; those of a
whole role (the agent-wise statistics of Dr. MAS, Feng et al. 2026); those of a role at one turn
(AT-GRPO, Zhao et al. 2025); or all of them, whatever their role."""

Normalisation = Literal["group", "none"]
"""What the centred rewards are divided by: the group's standard deviation, or nothing (Dr. GRPO:
the deviation gives problems that are nearly always or nearly never solved a larger weight)."""

Aggregation = Literal["seq-mean-token-mean", "token-mean", "seq-mean-token-sum", "constant"]
"""How the losses of tokens become one number: mean over a row's tokens, then over rows (GRPO); mean
over all tokens (DAPO); sum over a row's tokens, mean over rows; or the sum divided by rows times
the length limit (Dr. GRPO), which does not depend on how long the outputs are."""

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
class TokenLoss:
    """The loss of every token and what happened to it.

    Attributes:
        values_BC: Loss per token, with a gradient; padding holds numbers without meaning.
        clipped_BC: True where the clipped branch was the larger one; False at padding.
    """

    values_BC: Tensor
    clipped_BC: Tensor


@dataclass(frozen=True, slots=True)
class Whole:
    """The mini-batch that some rows are part of.

    Dividing by what the whole mini-batch holds (and not by what a micro-batch holds) makes the
    gradients of micro-batches add up to that of the mini-batch.

    Attributes:
        rows: Its rows.
        tokens: Its output tokens.
        limit: Length limit of one output, in tokens.
    """

    rows: int
    tokens: int
    limit: int


def group_keys(
    episodes: Sequence[Episode], *, by: Grouping = "slot", agentwise: Collection[str] = ()
) -> list[Hashable]:
    """The GRPO group of every span, episode by episode, in span order.

    Args:
        episodes: All rollouts of some problems.
        by: What is compared.
        agentwise: Roles that are compared by role whatever ``by`` says; they leave the groups of
            the others.
    """
    return [
        group_of(span, by="role" if span.role in agentwise else by)
        for episode in episodes
        for span in episode.spans
    ]


def group_of(span: Span, *, by: Grouping) -> tuple[int, str, int, int]:
    """The GRPO group of one span: problem, role, slot, turn; what is pooled is empty or -1."""
    role = "" if by == "problem" else span.role
    slot = span.slot if by == "slot" else -1
    turn = span.turn if by == "turn" else -1
    return (span.problem, role, slot, turn)


def advantages(
    rewards: Sequence[float], groups: Sequence[Hashable], *, normalisation: Normalisation = "group"
) -> NDArray[np.float64]:
    """``(reward - group mean) / (group standard deviation + 1e-6)``, deviation with ``ddof=1``.

    A group of one keeps its reward as it is; a group whose rewards are all equal gets exactly 0.

    Args:
        rewards: One per span.
        groups: One per span, any hashable.
        normalisation: ``none`` leaves the division out.

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
            centred = own - own.mean()
            scale = own.std(ddof=1) + _EPSILON if normalisation == "group" else 1.0
            result[rows] = centred / scale
    return result


def clipped_loss(
    new_BC: Tensor, old_BC: Tensor, *, advantage_B: Tensor, mask_BC: Tensor, clip: Clip
) -> TokenLoss:
    """The clipped surrogate of every token.

    Args:
        new_BC: Log-probabilities under the current weights, with a gradient.
        old_BC: Log-probabilities at the start of the iteration.
        advantage_B: One per row.
        mask_BC: True at output tokens.
        clip: Bounds.
    """
    ratio_BC = (new_BC - old_BC).clamp(-20.0, 20.0).exp()
    advantage_BC = advantage_B[:, None].expand_as(ratio_BC)
    plain_BC = -advantage_BC * ratio_BC
    bounded_BC = -advantage_BC * ratio_BC.clamp(1.0 - clip.low, 1.0 + clip.high)
    worse_BC = torch.maximum(plain_BC, bounded_BC)
    capped_BC = torch.where(
        advantage_BC < 0, torch.minimum(worse_BC, -clip.dual * advantage_BC), worse_BC
    )
    return TokenLoss(capped_BC, (bounded_BC > plain_BC) & mask_BC)


def aggregate(
    values_BC: Tensor,
    mask_BC: Tensor,
    *,
    by: Aggregation,
    size: Whole,
    weight_B: Tensor | None = None,
) -> Tensor:
    """What these rows contribute to the mini-batch's loss: a scalar.

    Args:
        values_BC: One value per token.
        mask_BC: True at output tokens.
        by: How.
        size: Of the mini-batch that the rows are part of.
        weight_B: Factor per row; the denominators stay those of unweighted rows.
    """
    mask = mask_BC.to(values_BC.dtype)
    row_B = (values_BC * mask).sum(1)
    if by == "seq-mean-token-mean":
        row_B = row_B / mask.sum(1).clamp(min=1.0)
    if weight_B is not None:
        row_B = row_B * weight_B
    if by == "token-mean":
        return row_B.sum() / max(1, size.tokens)
    if by == "constant":
        return row_B.sum() / (size.rows * size.limit)
    return row_B.sum() / size.rows
