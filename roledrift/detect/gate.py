"""The hygiene gate: a verdict that rests on suspect input is withheld, with the reason.

A detector says which statistics it rests on (``reads``); a finding of ``hygiene`` says which it
spoils. A withheld verdict is a *no verdict*, so it neither opens nor closes an alert.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.hygiene import NAME, SPOILS, Spoil
from roledrift.protocols import Detector
from roledrift.records import Verdict
from roledrift.sums import EVERYONE


def reads_of(detector: Detector) -> frozenset[str]:
    """What a detector rests on; nothing if it does not say, and then nothing is withheld."""
    return frozenset(getattr(detector, "reads", ()))


def gated(verdict: Verdict, reads: frozenset[str], suspect: Mapping[str, Verdict]) -> Verdict:
    """The verdict, or none where its input is suspect.

    Args:
        verdict: Of a detector other than ``hygiene``.
        reads: What the detector rests on.
        suspect: Role -> the finding of ``hygiene`` about it, of this record.
    """
    if verdict.state == "no verdict" or verdict.detector == NAME:
        return verdict
    roles = suspect if verdict.role == EVERYONE else (verdict.role,)
    for role in roles:
        finding = suspect.get(role)
        spoil = None if finding is None else _spoiler(finding.finding, reads)
        if finding is None or spoil is None:
            continue
        if spoil.drift or verdict.state != "drift":
            why = f"withheld: {finding.finding} of {role}, {finding.reason}"
            return no_verdict(verdict.detector, verdict.role, why, "input that is not suspect")
    return verdict


@cache
def _spoiler(finding: str, reads: frozenset[str]) -> Spoil | None:
    """What a finding spoils, if any of ``reads`` is among it."""
    spoil = SPOILS.get(finding)
    return spoil if spoil is not None and spoil.touches(reads) else None


def suspects(verdicts: Iterable[Verdict]) -> dict[str, Verdict]:
    """Findings of ``hygiene`` among ``verdicts`` that spoil something, by role."""
    return {
        one.role: one
        for one in verdicts
        if one.state == "drift" and one.detector == NAME and one.finding in SPOILS
    }
