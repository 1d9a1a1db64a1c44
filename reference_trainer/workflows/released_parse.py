r"""Reads selections, verdicts and plans as the released code of arXiv 2605.24202 does.

The rules of :mod:`reference_trainer.workflows.parse` differ where a text is not in the form that
was asked for. Which text is read how was recorded from that code; a test compares.
"""

from __future__ import annotations

import re

from reference_trainer.episodes import Parse

_BOXED_NUMBER = re.compile(r"\\boxed\{(\d+)\}", re.IGNORECASE)
_LONE_DIGIT = re.compile(r"\b[1-9]\b")
_BOXED_VERDICT = re.compile(r"\\boxed\{((?:in)?correct)\}", re.IGNORECASE)
_STRATEGY = re.compile(r"STRATEGY\s*(\d+)\s*:", re.IGNORECASE)
_NUMBERED = re.compile(r"^\s*(\d+)[.)]", re.MULTILINE)
_SHORTEST_LINE = 10


def released_selection(text: str, *, candidates: int) -> Parse:
    r"""Which candidate a text chooses, counted from 1; candidate 1 if it names none.

    The first ``\boxed{number}`` counts, without blanks in the box; if it is out of range or there
    is none, the first of the digits 1 to 9 that stands alone; if that is out of range, candidate 1.
    """
    boxed = _BOXED_NUMBER.search(text)
    if boxed and 1 <= int(boxed[1]) <= candidates:
        return Parse("tag", str(int(boxed[1])))
    lone = _LONE_DIGIT.search(text)
    within = lone is not None and int(lone[0]) <= candidates
    return Parse("fallback", lone[0] if lone is not None and within else "1")


def released_verdict(text: str) -> Parse:
    r"""The first ``\boxed{Correct}`` or ``\boxed{Incorrect}``; nothing else is a verdict."""
    boxed = _BOXED_VERDICT.search(text)
    return Parse("tag", boxed[1].lower()) if boxed else Parse("failed", None)


def released_strategies(text: str, *, most: int) -> tuple[Parse, tuple[str, ...]]:
    """Up to ``most`` strategies, never none.

    Blocks headed ``STRATEGY n:``, else the items of a numbered list, lines included, both in the
    order of their numbers; else lines of more than ten characters; else the whole text, even if it
    is empty.

    Returns:
        The parse, whose value is the number of strategies, and the strategies.
    """
    if blocks := _blocks(_STRATEGY, text):
        return Parse("tag", str(len(blocks[:most]))), blocks[:most]
    items = _blocks(_NUMBERED, text)
    if not items:
        lines = (line.strip() for line in text.split("\n"))
        items = tuple(line for line in lines if len(line) > _SHORTEST_LINE)
    items = (items or (text.strip(),))[:most]
    return Parse("fallback", str(len(items))), items


def _blocks(head: re.Pattern[str], text: str) -> tuple[str, ...]:
    """What follows every ``head``, by the number in it.

    A block holds at least one character that is not blank, if there is one: a head that follows
    another at once belongs to the block of the first.
    """
    blocks = []
    at = 0
    while (match := head.search(text, at)) is not None and match.end() < len(text):
        begin = match.end()
        while begin < len(text) - 1 and text[begin].isspace():
            begin += 1
        following = head.search(text, begin + 1)
        at = following.start() if following else len(text)
        blocks.append((int(match[1]), text[begin:at].strip()))
    return tuple(block for _, block in sorted(blocks, key=lambda block: block[0]))
