"""Coherence of slots with its control: the same problems against different ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from roledrift.records import GramRecord


@dataclass(frozen=True, slots=True)
class ByProblem:
    """Mean cosines of the gradients of a role's slots, each on one half of the step's problems.

    Attributes:
        same: Different slots on the same problems.
        apart: Different slots on different problems.
    """

    same: float
    apart: float

    @property
    def excess(self) -> float:
        """``same - apart``: what being on the same problems adds.

        Gradients of one role agree also because all its problems ask for the same behaviour. Only
        what goes beyond that is the claim that N copies on one prompt push one policy one way.
        """
        return self.same - self.apart


def by_problem(record: GramRecord, role: str) -> ByProblem | None:
    """Coherence of a role's slots with the control: same problems against different ones.

    The 2N parts (slot, half of the problems) make a two-way layout: N (N - 1) pairs of different
    slots on the same half, as many on different halves. Each mean is one number per record, of
    neighbouring problems; its standard error is taken over records.

    Returns:
        None if the role was not split by problem, or a part's gradient is zero or not finite.
    """
    products = np.asarray(record.halves.get(role, ()), dtype=np.float64)
    if products.size < 16:
        return None
    lengths = np.sqrt(np.diag(products))
    if not (np.isfinite(products).all() and (lengths > 0).all()):
        return None
    slots = len(lengths) // 2
    cosine = (products / np.outer(lengths, lengths)).reshape(slots, 2, slots, 2)
    others = ~np.eye(slots, dtype=bool)
    return ByProblem(
        same=float(np.mean([cosine[:, h, :, h][others] for h in (0, 1)])),
        apart=float(np.mean([cosine[:, h, :, 1 - h][others] for h in (0, 1)])),
    )
