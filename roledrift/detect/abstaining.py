"""Verdicts that are none: what a detector says when it has nothing to judge by."""

from __future__ import annotations

from functools import lru_cache

from roledrift.judgement import Verdict


@lru_cache(maxsize=1024)
def no_verdict(detector: str, role: str, reason: str, *needs: str) -> Verdict:
    """A verdict that opens and closes nothing; said again it is the same object.

    Args:
        detector: Name of the detector.
        role: Role that is not judged.
        reason: Why, in one sentence.
        needs: What is missing for a verdict, if something is.
    """
    return Verdict(detector, role, "no verdict", reason=reason, needs=needs)


def waiting(detector: str, role: str, *needs: str) -> Verdict:
    """A verdict that will come once ``needs`` are there."""
    return no_verdict(detector, role, f"needs {' and '.join(needs)}", *needs)
