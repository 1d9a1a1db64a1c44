"""Which rows are whose: one role per row, or several roles' turns inside one row.

Shape suffixes: N spans, C completion positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from roledrift.errors import CaptureError

ROLE_MASK = "role_mask"
"""What a ``rollout_func`` may return beside ``completion_ids``: the role's index per token."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of some rows: as many as there are rows, or one per row and role in it.

    Attributes:
        rows: Row of each span, by its place among the rows.
        roles: Registry index of each span; -1 for a role that the workflow does not have.
        owned_NC: True at the span's own tokens; None where each row is a span.
    """

    rows: tuple[int, ...]
    roles: tuple[int, ...]
    owned_NC: Tensor | None = None

    def of(self, columns: Tensor) -> Tensor:
        """Columns of rows as columns of spans; the same tensor where each row is a span."""
        if self.owned_NC is None:
            return columns
        return columns[torch.tensor(self.rows, dtype=torch.int64).to(columns.device)]

    def own(self, mask_BC: Tensor) -> Tensor:
        """A mask of rows, cut down to each span's own tokens ``(N, C)``."""
        if self.owned_NC is None:
            return mask_BC
        return self.of(mask_BC) * self.owned_NC.to(mask_BC.device)


def masks_of(
    rows: Sequence[Mapping[str, Any]], lengths: Sequence[int], roles: int
) -> tuple[tuple[int, ...], ...] | None:
    """The role per token of each row's completion; None if the rows do not say.

    Args:
        rows: Rows as the reward functions saw them, with what a ``rollout_func`` has added.
        lengths: Tokens of each completion.
        roles: Roles in the registry.

    Raises:
        CaptureError: If a mask is not as long as its completion, or names no role.
    """
    if not rows or ROLE_MASK not in rows[0]:
        return None
    masks = tuple(tuple(int(role) for role in row[ROLE_MASK]) for row in rows)
    for number, (mask, length) in enumerate(zip(masks, lengths, strict=True)):
        if len(mask) != length:
            raise CaptureError(
                f"role_mask of row {number} has {len(mask)} entries for {length} tokens of its "
                "completion: give one per token, -1 for what no role wrote"
            )
        alien = sorted(set(mask) - set(range(-1, roles)))
        if alien:
            raise CaptureError(
                f"role_mask of row {number} holds {alien}: give indices into "
                f"workflow.role_names, 0 to {roles - 1}, or -1"
            )
    return masks


def spans_of(
    roles: Sequence[int],
    masks: Sequence[Sequence[int]] | None,
    rows: Sequence[int],
    *,
    width: int,
) -> Spans:
    """Spans of some rows of a generation.

    All turns of a role in one row are one span: they were sampled in one sequence, and one
    advantage is theirs.

    Args:
        roles: Registry index per row of the generation.
        masks: What :func:`masks_of` gave for it.
        rows: Rows of the generation that are looked at, in their order.
        width: Completion positions, padding included.
    """
    if masks is None:
        return Spans(tuple(range(len(rows))), tuple(roles[row] for row in rows))
    mask_BC = torch.full((len(rows), width), -1, dtype=torch.int64)
    for place, row in enumerate(rows):
        mask_BC[place, : len(masks[row])] = torch.tensor(masks[row], dtype=torch.int64)
    pairs = [
        (place, role) for place, row in enumerate(rows) for role in sorted(set(masks[row]) - {-1})
    ]
    places, owners = [place for place, _ in pairs], [role for _, role in pairs]
    owned_NC = mask_BC[places] == torch.tensor(owners, dtype=torch.int64)[:, None]
    return Spans(tuple(places), tuple(owners), owned_NC)
