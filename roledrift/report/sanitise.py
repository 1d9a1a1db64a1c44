"""Make text harmless before it is rendered: whatever a model wrote may be hostile."""

from __future__ import annotations

import re

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # operating system commands: titles, links
    r"|[\x1b\x9b][\[\]()#;?]*[0-9;:?]*[ -/]*[@-~]?"  # control sequences: colours, cursor
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)

GAP = "\n[…]\n"
"""Stands where the middle of a text was left out."""


def clean(text: str) -> str:
    """Remove escape sequences and control, direction and zero-width characters.

    Newlines and tabs stay; a carriage return becomes a newline, so it cannot overwrite a line.
    """
    if text.isascii() and text.isprintable():
        return text
    if not _CONTROLS.search(text):
        return text
    lines = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _CONTROLS.sub("", lines)


def cut(text: str, limit: int) -> tuple[str, str]:
    """Shorten ``text`` to ``limit`` characters, and say what was left out.

    A fifth of them are its end: that is where an answer stands, and where a text that never stops
    is seen not to.
    """
    if len(text) <= limit:
        return clean(text), ""
    last = limit // 5
    first = limit - last
    remark = f"cut: the first {first:,} and the last {last:,} of {len(text):,} characters"
    return f"{clean(text[:first])}{GAP}{clean(text[-last:])}", remark


def one_line(text: str, limit: int = 160) -> str:
    """Put ``text`` on a single line of at most ``limit`` characters."""
    flat = " ".join(clean(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def fenced(text: str) -> str:
    """Make a Markdown code block whose fence is longer than any run of backticks in ``text``."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def escaped(text: str) -> str:
    """Escape ``text`` for Markdown prose and table cells, on one line."""
    flat = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#~!])", r"\\\1", flat)
