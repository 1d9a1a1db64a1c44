"""Compare two texts word by word."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Literal

from roledrift.measure.wording import trigrams
from roledrift.report.texts.text_blocks import Piece

# Brackets are words of their own: "\\boxed{1}." and "\\boxed{2}" differ in the number alone.
_WORDS = re.compile(r"(?:\w+|[][(){}]|[^\w\s\][(){}]+)\s*|\s+")
_OFTEN = 120


def word_diff(left: str, right: str) -> tuple[Piece, ...]:
    """Split two texts into common and differing words, each with the white space after it."""
    a, b = _WORDS.findall(left), _WORDS.findall(right)
    plain_a, plain_b = [word.strip() for word in a], [word.strip() for word in b]
    # A collapsed model repeats itself thousands of times; without this it would take minutes.
    often = max([*Counter(plain_a).values(), *Counter(plain_b).values()], default=0) > _OFTEN
    matcher = SequenceMatcher(None, plain_a, plain_b, autojunk=often)
    parts: list[Piece] = []

    def add(sign: Literal["=", "-", "+"], words: Sequence[str]) -> None:
        if any(words):
            parts.append((sign, "".join(words)))

    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal":
            # Equal words may differ in their white space: then it is the right one that is shown,
            # unless one side has none, where its words would grow together on the other.
            start = k
            for at, (old, new) in enumerate(zip(a[i:j], b[k:m], strict=True), start=k):
                if old[-1:].isspace() != new[-1:].isspace():
                    word = new.strip()
                    add("=", [*b[start:at], word])
                    add("-", [old[len(word) :]])
                    add("+", [new[len(word) :]])
                    start = at + 1
            add("=", b[start:m])
        else:
            add("-", a[i:j])
            add("+", b[k:m])
    return tuple(parts)


def side(parts: Sequence[Piece], sign: Literal["-", "+"]) -> str:
    """Return the left (``-``) or the right (``+``) text of a difference."""
    return "".join(text for mark, text in parts if mark in ("=", sign))


trigrams_of = lru_cache(maxsize=1024)(trigrams)
"""The word 3-grams of a text; a page compares the same texts several times."""


def containment(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Share of ``a`` that is also in ``b``: how much of a text was copied."""
    return len(a & b) / len(a) if a else 0.0
