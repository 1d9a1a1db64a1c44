"""What a role wrote at the start and what it writes now, for the alerts that need to show it.

Texts are kept while a run goes, in bounded memory: a few of the first per role, and the newest for
the same problems.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from roledrift.judgement import TextPair
from roledrift.records import Sample

PAIRS = 3
"""Pairs that an alert carries at most."""

CLIP = 600
"""Characters of a text that are kept."""

_SAME_PROBLEM, _OTHERS = 8, 8


@dataclass(slots=True)
class _OfRole:
    """Texts of one role: by problem and place, and those whose problem does not come back."""

    first: dict[tuple[str, int, int], Sample] = field(default_factory=dict)
    latest: dict[tuple[str, int, int], Sample] = field(default_factory=dict)
    early: list[Sample] = field(default_factory=list)
    late: list[Sample] = field(default_factory=list)


class TextPairs:
    """Keeps texts per role and pairs them across the onset of a finding.

    The same canary problem before and now is the best pair. Where there is none, the first texts of
    a role stand beside its newest ones, the longest before those drawn at random.
    """

    def __init__(self) -> None:
        self._roles: dict[str, _OfRole] = {}

    def keep(self, samples: Iterable[Sample]) -> None:
        """Take the texts of one step. Of canaries the first ``8`` per role are followed."""
        fresh: dict[str, list[Sample]] = {}
        for one in samples:
            short = replace(one, text=clipped(one.text), prompt_text="")
            its = self._roles.setdefault(one.role, _OfRole())
            place = (one.prompt, one.slot, one.turn)
            if one.prompt and "canary" in one.flags:
                if place in its.first or len(its.first) < _SAME_PROBLEM:
                    its.first.setdefault(place, short)
                    its.latest[place] = short
            else:
                fresh.setdefault(one.role, []).append(short)
        for role, texts in fresh.items():
            its, texts = self._roles[role], sorted(texts, key=_telling)
            its.early += texts[: _OTHERS - len(its.early)]
            its.late = texts[:_OTHERS]

    def around(self, role: str, onset: int) -> tuple[TextPair, ...]:
        """At most three pairs of texts of ``role`` from before ``onset`` and from then on."""
        its = self._roles.get(role)
        if its is None:
            return ()
        found: dict[str, TextPair] = {}
        for place, before in sorted(its.first.items(), key=lambda item: item[0][1:]):
            after = its.latest[place]
            if before.step < onset <= after.step:
                found.setdefault(before.prompt, _pair(before, after))
        pairs = list(found.values())[:PAIRS]
        early = [one for one in its.early if one.step < onset]
        late = [one for one in its.late if one.step >= onset]
        pairs += [_pair(a, b) for a, b in zip(early, late, strict=False)]
        return tuple(pairs[:PAIRS])


def clipped(text: str, limit: int = CLIP) -> str:
    """The beginning of ``text``, marked if something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _telling(sample: Sample) -> int:
    """Rank by why a text was kept: the longest shows most, chance shows the usual."""
    return next((i for i, flag in enumerate(("longest", "random")) if flag in sample.flags), 2)


def _pair(before: Sample, after: Sample) -> TextPair:
    same = before.prompt if before.prompt == after.prompt else ""
    return TextPair(before.step, after.step, before.text, after.text, same)
