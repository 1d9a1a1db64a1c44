"""Verdict suppression: a role whose input is not what it should be is never called fine.

A finding of the layer ``input`` spoils the verdicts ``ok`` and ``watch`` that rest on what it is
about: they become *no verdict*, with the reason. A drift that is found all the same stays: it is a
consequence that the incident names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.cards import Catalogue
from roledrift.judgement import Verdict
from roledrift.sums import EVERYONE

SPOILS: Mapping[str, tuple[str, ...]] = {
    "duplicate_rows": ("",),
    "logprob_mode_mismatch": ("rollout.", "old."),
    "adapter_not_served": ("rollout.", "old.", "update."),
    "engine_mismatch": ("rollout.", "old.", "update."),
    "truncation": ("length",),
}
"""Finding -> statistics that it spoils; a name that ends in ``.`` stands for all that begin so, an
empty one for all. Findings that are not here spoil nothing."""


def suppressed(verdicts: Iterable[Verdict], catalogue: Catalogue) -> list[Verdict]:
    """The verdicts of one record, without those that rest on spoilt input."""
    verdicts = list(verdicts)
    suspect = {
        verdict.role: verdict
        for verdict in verdicts
        if verdict.state == "drift" and verdict.finding in SPOILS
    }
    if not suspect:
        return verdicts
    reads = {card.name: card.reads for card in catalogue.cards}
    return [_checked(verdict, suspect, reads.get(verdict.detector, ())) for verdict in verdicts]


def _checked(verdict: Verdict, suspect: Mapping[str, Verdict], reads: tuple[str, ...]) -> Verdict:
    if verdict.state not in ("ok", "watch"):
        return verdict
    # What is wrong with all roles together is wrong with each of them, for all that is known.
    for role in suspect if verdict.role == EVERYONE else (verdict.role, EVERYONE):
        spoiler = suspect.get(role)
        if (
            spoiler is not None
            and spoiler.detector != verdict.detector
            and _touched(spoiler, reads)
        ):
            whose = "all roles" if role == EVERYONE else role
            why = f"withheld because of {spoiler.finding} of {whose}: {spoiler.reason}"
            return no_verdict(verdict.detector, verdict.role, why, "input without that fault")
    return verdict


def _touched(spoiler: Verdict, reads: tuple[str, ...]) -> bool:
    return any(
        name == spoilt or ((not spoilt or spoilt.endswith(".")) and name.startswith(spoilt))
        for spoilt in SPOILS[spoiler.finding]
        for name in reads
    )
