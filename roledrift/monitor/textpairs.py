"""Texts of a role from its start and from now, for alerts that show them side by side.

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
        """Take the texts of one step; the first 8 canaries of each role are followed."""
        latest: dict[str, list[Sample]] = {}
        for sample in samples:
            short = replace(sample, text=clipped(sample.text), prompt_text="")
            kept = self._roles.setdefault(sample.role, _OfRole())
            place = (sample.prompt, sample.slot, sample.turn)
            if sample.prompt and "canary" in sample.flags:
                if place in kept.first or len(kept.first) < _SAME_PROBLEM:
                    kept.first.setdefault(place, short)
                    kept.latest[place] = short
            else:
                latest.setdefault(sample.role, []).append(short)
        for role, texts in latest.items():
            kept, texts = self._roles[role], sorted(texts, key=_telling)
            kept.early += texts[: _OTHERS - len(kept.early)]
            kept.late = texts[:_OTHERS]

    def around(self, role: str, onset: int) -> tuple[TextPair, ...]:
        """Return up to three pairs of texts of ``role``, each from before and after ``onset``."""
        kept = self._roles.get(role)
        if kept is None:
            return ()
        by_prompt: dict[str, TextPair] = {}
        for place, before in sorted(kept.first.items(), key=lambda item: item[0][1:]):
            after = kept.latest[place]
            if before.step < onset <= after.step:
                by_prompt.setdefault(before.prompt, _pair(before, after))
        pairs = list(by_prompt.values())[:PAIRS]
        early = [sample for sample in kept.early if sample.step < onset]
        late = [sample for sample in kept.late if sample.step >= onset]
        pairs += [_pair(a, b) for a, b in zip(early, late, strict=False)]
        return tuple(pairs[:PAIRS])


def clipped(text: str, limit: int = CLIP) -> str:
    """Shorten ``text`` to its beginning, with a mark if something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _telling(sample: Sample) -> int:
    """Rank by why a text was kept: the longest shows most, chance shows the usual."""
    return next((i for i, flag in enumerate(("longest", "random")) if flag in sample.flags), 2)


def _pair(before: Sample, after: Sample) -> TextPair:
    same = before.prompt if before.prompt == after.prompt else ""
    return TextPair(before.step, after.step, before.text, after.text, same)
