"""How far apart two policies are, from several statistics that grow with the distance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean


class Distance:
    """The mean logarithm of a role's distances, always of those that were measured at first.

    Their geometric mean is in proportion to the distance, as each of them is, and less noisy.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._names: dict[str, tuple[str, ...]] = {}

    def begun(self, role: str) -> bool:
        """Whether the distances of ``role`` were measured before."""
        return role in self._names

    def log(self, role: str, parts: Mapping[str, float]) -> float | None:
        """The mean logarithm; None if not all that belong to it were measured."""
        if not parts:
            return None
        names = self._names.setdefault(role, tuple(parts))
        if any(name not in parts for name in names):
            return None
        return fmean(math.log(max(parts[name], self._least)) for name in names)
