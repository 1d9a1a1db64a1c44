r"""Reading outputs. Every parser says how: by the demanded tag, by a fallback, or not at all."""

from __future__ import annotations

import re

from reference_trainer.episodes import How, Parse
from reference_trainer.tasks import Grade

_BOXED_NUMBER = re.compile(r"\\boxed\{\s*(\d+)\s*\}", re.IGNORECASE)
_BOXED_VERDICT = re.compile(
    r"\\boxed\{\s*(?:(correct|incorrect)|\\text\{\s*(correct|incorrect)\s*\})\s*\}", re.IGNORECASE
)
_BARE_VERDICT = re.compile(r"\b(correct|incorrect)\b", re.IGNORECASE)
_STRATEGY = re.compile(r"STRATEGY\s*(\d+)\s*:", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*\d+\s*[.)]\s*(\S.*)$", re.MULTILINE)
_SHORTEST_LINE = 10
_LONE_DIGIT = re.compile(r"\b[1-9]\b")


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


def parse_verdict(text: str) -> Parse:
    r"""``correct`` or ``incorrect``.

    The first ``\boxed{Correct}`` or ``\boxed{Incorrect}`` counts as the tag, with nothing else in
    the box; otherwise the last of the two words anywhere in the text is a fallback, which approves
    of nothing.
    """
    boxed = _BOXED_VERDICT.search(text)
    if boxed:
        return Parse("tag", (boxed[1] or boxed[2]).lower())
    words = _BARE_VERDICT.findall(text)
    return Parse("fallback", str(words[-1]).lower()) if words else Parse("failed", None)


def parse_strategies(text: str, *, most: int) -> tuple[Parse, tuple[str, ...]]:
    """Up to ``most`` strategies, and how they were found.

    Blocks headed ``STRATEGY n:``, in the order of their numbers, count as the tag. Fallbacks are,
    in this order, the items of a numbered list, lines of more than ten characters, the whole text.
    A text keeps the blanks that are part of it.

    Returns:
        The parse, whose value is the number of strategies, and the strategies.
    """
    heads = list(_STRATEGY.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    blocks = sorted(
        (int(head[1]), text[head.end() : end].rstrip())
        for head, end in zip(heads, ends, strict=False)
    )
    how: How = "tag"
    strategies = [block for _, block in blocks if block.strip()]
    if not strategies:
        how = "fallback"
        strategies = [item.rstrip() for item in _NUMBERED.findall(text)]
    if not strategies:
        strategies = [
            line.rstrip() for line in text.splitlines() if len(line.strip()) > _SHORTEST_LINE
        ]
    if not strategies and text.strip():
        strategies = [text.rstrip()]
    if not strategies:
        return Parse("failed", None), ()
    strategies = strategies[:most]
    return Parse(how, str(len(strategies))), tuple(strategies)
