"""How a run looks in a notebook: small self-contained HTML in which every name is harmless."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_INKS = {
    "failing": "#b3261e",
    "input problem": "#7b2a90",
    "suspicious": "#8a5a00",
    "clean": "#1d7a46",
}


def safe(text: object) -> str:
    """``text`` as HTML without markup, control characters or changes of direction."""
    return escape(_UNSEEN.sub("", str(text)))


def headline(outcome: str, sentence: str) -> str:
    """An outcome in its colour, and the sentence that says what happened."""
    ink = _INKS.get(outcome, "#5f666e")
    badge = f'<b style="color:{ink}">{safe(outcome)}</b>' if outcome else ""
    return f"{badge} {safe(sentence)}".strip()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    left = ' style="text-align:left"'
    head = "".join(f"<th{left}>{safe(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{left}>{cell}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
    )
