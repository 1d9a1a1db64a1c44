"""Which role a text reads like, judged by the words that each role used at the start of the run.

A naive Bayes classifier that is frozen on the first texts. It is a reading aid that picks texts to
look at; the detectors do not use it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from roledrift.records import Sample

_WORD = re.compile(r"\w+|[^\w\s]+")
_WORDS = 200
_REMEMBERED = 16_384
_FEWEST = 3


@dataclass(frozen=True, slots=True)
class RoleClassifier:
    """A naive Bayes classifier: the log-probability of each word under each role.

    Attributes:
        roles: Roles with enough first texts.
        words: Word to its log-probability under each role, in nats.
        unknown: The same for a word that no role used.
        until: Last step that the profiles rest on.
    """

    roles: tuple[str, ...]
    words: Mapping[str, tuple[float, ...]]
    unknown: tuple[float, ...]
    until: int
    _known: dict[tuple[str, str], tuple[str, float]] = field(default_factory=dict, repr=False)

    def nearest(self, text: str, role: str) -> tuple[str, float]:
        """Find the role that ``text`` reads most like, and by how much more than like ``role``.

        Returns:
            Name and nats per word; ``("", nan)`` if that is unknown.
        """
        nearest = self._known.get((role, text))
        if nearest is None:
            nearest = self._known[role, text] = self._nearest(text, role)
        return nearest

    def _nearest(self, text: str, role: str) -> tuple[str, float]:
        words = _words(text)
        if role not in self.roles or not words:
            return "", math.nan
        columns = [self.words.get(_short(word), self.unknown) for word in words]
        totals = [math.fsum(column) for column in zip(*columns, strict=True)]
        best = max(range(len(totals)), key=lambda index: totals[index])
        away = (totals[best] - totals[self.roles.index(role)]) / len(words)
        return self.roles[best], away


def tokens(text: str) -> list[str]:
    """Split ``text`` into its first 200 words, in lower case and with all numbers alike."""
    return [_short(word) for word in _words(text)]


def _words(text: str) -> list[str]:
    # A word is seldom longer than 24 characters; a line of a million must not be scanned.
    words: list[str] = _WORD.findall(text[: 12 * _WORDS].lower())
    return words[:_WORDS]


@lru_cache(maxsize=_REMEMBERED)
def _short(word: str) -> str:
    return "0" if word.isdigit() else word[:24]


def train(
    samples: Sequence[Sample], roles: Sequence[str], until: int | None
) -> RoleClassifier | None:
    """Train a classifier on the texts up to step ``until``.

    Args:
        samples: Texts of the run.
        roles: Role names.
        until: End of the baseline window; None takes the first step with texts.

    Returns:
        None if fewer than two roles have at least three texts there.
    """
    if not samples:
        return None
    first = min(sample.step for sample in samples)
    last = max(first, first if until is None else until)
    counts: dict[str, Counter[str]] = {role: Counter() for role in roles}
    texts: Counter[str] = Counter()
    for sample in samples:
        if sample.step <= last and sample.role in counts:
            counts[sample.role].update(tokens(sample.text))
            texts[sample.role] += 1
    known = tuple(role for role in roles if texts[role] >= _FEWEST and counts[role])
    if len(known) < 2:
        return None
    vocabulary = sorted(set().union(*(counts[role] for role in known)))
    # Half a count for every word: a word that a role never used is unlikely, not impossible.
    sizes = [counts[role].total() + 0.5 * (len(vocabulary) + 1) for role in known]
    words = {
        word: tuple(
            math.log((counts[role][word] + 0.5) / size)
            for role, size in zip(known, sizes, strict=True)
        )
        for word in vocabulary
    }
    return RoleClassifier(known, words, tuple(math.log(0.5 / size) for size in sizes), last)
