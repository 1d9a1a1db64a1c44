r"""Reading outputs. Every parser says how: by the demanded tag, by a fallback, or not at all."""

from __future__ import annotations

import re

from reference_trainer.episodes import Parse
from reference_trainer.tasks import Grade

_BOXED_NUMBER = re.compile(r"\\boxed\{\s*(\d+)\s*\}", re.IGNORECASE)
_LONE_DIGIT = re.compile(r"(?<!\S)[1-9](?!\S)")


def parse_answer(grade: Grade) -> Parse:
    """A solver's answer as its grader found it."""
    return Parse("failed" if grade.answer is None else "tag", grade.answer)


def parse_selection(text: str, *, candidates: int) -> Parse:
    r"""Which candidate a text chooses, counted from 1.

    The first ``\boxed{number}`` within range counts as the tag; otherwise the first digit that
    stands alone and is within range is a fallback.
    """
    boxed = _BOXED_NUMBER.search(text)
    if boxed and 1 <= int(boxed[1]) <= candidates:
        return Parse("tag", str(int(boxed[1])))
    lone = _LONE_DIGIT.search(text)
    if lone and int(lone[0]) <= candidates:
        return Parse("fallback", lone[0])
    return Parse("failed", None)
