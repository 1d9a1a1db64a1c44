"""Verdicts that are none: what a detector says when it has nothing to judge by."""

from __future__ import annotations

from functools import lru_cache

from roledrift.judgement import Verdict

LONG = 8
"""Records in a row without a measurement after which the last verdict no longer stands."""


@lru_cache(maxsize=1024)
def no_verdict(detector: str, role: str, reason: str, *needs: str) -> Verdict:
    """A verdict that opens and closes nothing; said again it is the same object."""
    return Verdict(detector, role, "no verdict", reason=reason, needs=needs)


def waiting(detector: str, role: str, *needs: str) -> Verdict:
    """A verdict that will come once ``needs`` are there."""
    return no_verdict(detector, role, f"needs {' and '.join(needs)}", *needs)


class Presence:
    """Keeps a role that is no longer measured from being called fine."""

    def __init__(self, detector: str, need: str) -> None:
        self._detector, self._need = detector, need
        self._last: dict[str, int] = {}
        self._missed: dict[str, int] = {}

    def observe(self, role: str, step: int, measured: bool) -> Verdict | None:
        """Take one record; the verdict that is withheld, if one is.

        None if the role was measured, or lately enough that the last verdict stands.
        """
        if measured:
            self._last[role], self._missed[role] = step, 0
            return None
        if role not in self._last:
            return waiting(self._detector, role, self._need)
        self._missed[role] += 1
        if self._missed[role] < LONG:
            return None
        why = f"no {self._need} measured since step {self._last[role]}"
        return no_verdict(self._detector, role, why, self._need)
