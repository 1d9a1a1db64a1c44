r"""The shape of a text: what kind of answer it is, whatever it says.

Each predicate states the paper's definition (arXiv 2605.24202, tables 4 to 6) and what was left
open there and is decided here. Spaces inside the braces of ``\boxed{ 2 }`` never matter: tokenizers
with small vocabularies decode to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.measure.groups import Columns, Pooled, given, span_probe
from roledrift.spans import SpanTable

TERSE_TOKENS = 30
MIN_BODY_LINES = 3
HEDGES = (
    "wait",
    "alternatively",
    "actually",
    "hmm",
    "let me reconsider",
    "on second thought",
    "not correct",
    "this is wrong",
)

_RARE = ("wait", "alternat", "actually", "hmm", "reconsider", "second", "correct", "wrong")
Boxes = Sequence[tuple[int, int, int]]
"""Start of each box, and begin and end of its content."""

_BOX = "\\boxed"
_BRACES = re.compile(r"(?P<box>\\boxed\s*\{)|\\\\(?!boxed)|\\[{}]|[{}]")
_FENCE = re.compile(r"```[ \t]*python[ \t]*\r?\n(.*?)(?:```|\Z)", re.IGNORECASE | re.DOTALL)
_HEDGE = re.compile(
    r"\b(?:" + "|".join(phrase.replace(" ", r"\s+") for phrase in HEDGES) + r")\b", re.IGNORECASE
)


def boxes(text: str) -> list[str]:
    r"""Contents of the balanced, non-empty ``\boxed{...}`` in ``text``, stripped, in order."""
    return _contents(text, _boxes(text))


def boxed(text: str) -> bool:
    r"""Whether the text holds an answer in a box.

    Paper: "a parseable ``\boxed{}``". Here: balanced braces (``\{`` and ``\}`` do not count) with
    something inside.
    """
    return bool(boxes(text))


def terse(text: str, tokens: int) -> bool:
    """Whether the text is a short stamp.

    Paper: at most 30 tokens and a parseable box. Here: the same; tokens are trainable tokens.
    """
    return tokens <= TERSE_TOKENS and boxed(text)


def bare_stamp(text: str) -> bool:
    r"""Whether the text is nothing but a box.

    Paper (for evaluators): at most 200 tokens, a boxed verdict, no code fence. Here: the text
    without outer white space is exactly one ``\boxed{...}``, for any role and task.
    """
    return _bare(text, _boxes(text))


def code_fence(text: str) -> bool:
    """Whether the text holds a program.

    Paper: a fenced Python block with at least 3 body lines. Here: a fence opened with
    ``python`` in any case; body lines are those that are not blank; a fence that the length
    limit left open counts.
    """
    return any(
        sum(bool(line.strip()) for line in fence.group(1).splitlines()) >= MIN_BODY_LINES
        for fence in _FENCE.finditer(text)
    )


def hedging(text: str) -> bool:
    """Whether the text holds a phrase of doubt.

    Paper: any phrase of its list (:data:`HEDGES`); case and word borders unspecified. Here: in any
    case, whole words only ("await" is no "wait"), any white space between the words of a phrase.
    """
    # The search is slow where nothing is found; most texts lack even the rare word of each phrase.
    if text.isascii():
        lowered = text.lower()
        if not any(word in lowered for word in _RARE):
            return False
    return _HEDGE.search(text) is not None


@span_probe("text_N")
def shape(spans: SpanTable) -> Columns:
    r"""Shares of spans with text that have each shape; ``terse`` only where lengths are known.

    ``verdict_tag`` is the share with an evaluator's verdict: ``\boxed{Correct}`` or
    ``\boxed{Incorrect}``, in any case.
    """
    text_N = given(spans.text_N)
    there_N = np.array([text is not None for text in text_N], dtype=np.bool_)

    # Looked for once for the three shapes that are about boxes: it is the dear part.
    boxes_N = [() if text is None else _boxes(text) for text in text_N]
    contents_N = [
        _contents(text or "", positions) if positions else []
        for text, positions in zip(text_N, boxes_N, strict=True)
    ]

    def share(holds: Callable[[str], bool]) -> Pooled:
        has_N = np.array([text is not None and holds(text) for text in text_N], dtype=np.bool_)
        return Pooled(there_N, has_N)

    def share_of_boxes(holds: Sequence[bool]) -> Pooled:
        return Pooled(there_N, np.array(holds, dtype=np.bool_))

    pairs = zip(text_N, boxes_N, strict=True)
    columns = {
        "boxed": share_of_boxes([bool(contents) for contents in contents_N]),
        "bare_stamp": share_of_boxes(
            [bool(positions) and _bare(text or "", positions) for text, positions in pairs]
        ),
        "code_fence": share(code_fence),
        "verdict_tag": share_of_boxes([_verdict(contents) for contents in contents_N]),
        "hedging": share(hedging),
    }
    if spans.tokens_N is not None:
        short_N = spans.tokens_N <= TERSE_TOKENS
        columns["terse"] = Pooled(there_N, columns["boxed"].totals_N * short_N)
    return columns


def _contents(text: str, positions: Boxes) -> list[str]:
    contents = (text[begin:end].strip() for _, begin, end in positions)
    return [content for content in contents if content]


def _bare(text: str, positions: Boxes) -> bool:
    return any(
        not text[:start].strip() and not text[end + 1 :].strip() and bool(text[begin:end].strip())
        for start, begin, end in positions[:1]
    )


def _verdict(contents: Sequence[str]) -> bool:
    return any(content.lower() in ("correct", "incorrect") for content in contents)


def _boxes(text: str) -> list[tuple[int, int, int]]:
    """Start of each balanced box, and begin and end of its content, in order of their starts.

    One pass: a collapsed model may write thousands of boxes and close none.
    """
    closed: list[tuple[int, int, int]] = []
    open_braces: list[tuple[int, int] | None] = []
    inside = 0
    # Braces outside of every box cannot matter to one: most texts are skipped at C speed.
    at = text.find(_BOX)
    while at >= 0 and (token := _BRACES.search(text, at)) is not None:
        at = token.end()
        if token.group() == "}":
            box = open_braces.pop() if open_braces else None
            if box is not None:
                closed.append((*box, token.start()))
                inside -= 1
        elif token.group() == "{":
            open_braces.append(None)
        elif token.group("box"):
            open_braces.append((token.start(), token.end()))
            inside += 1
        if not inside:
            open_braces.clear()
            at = text.find(_BOX, at)
    return sorted(closed)


def _share(name: str, title: str, healthy: str, formula: str, order: int) -> Statistic:
    return Statistic(
        name,
        title,
        "share of answers",
        formula=f"share of spans with text {formula}",
        healthy=healthy,
        supply="text in RoleBatch (tier business or full)",
        share=True,
        order=order,
    )


CARDS = (
    ProbeCard(
        "shape",
        shape,
        (
            _share(
                "terse",
                "Terse answers",
                "near 1 for a terse role, near 0 for a role that solves",
                "that have at most 30 tokens and a parseable box",
                13,
            ),
            _share("boxed", "Boxed answers", "level", "that have an answer in a box", 14),
            _share(
                "bare_stamp",
                "Bare stamps",
                "level for a terse role, else near 0",
                "that are nothing but a box",
                15,
            ),
            _share(
                "code_fence",
                "Code blocks",
                "near 0 for roles that judge or select",
                "that have a fenced Python block",
                16,
            ),
            _share(
                "verdict_tag",
                "Verdict tags",
                "level for a role that judges",
                "that have a boxed Correct or Incorrect",
                17,
            ),
            _share("hedging", "Hedging", "level", "that have a phrase of doubt", 18),
        ),
    ),
)
