"""Incidents on the terminal, in one to three lines each."""

from __future__ import annotations

import logging
import os
import re
import sys
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from roledrift.judgement import Severity
    from roledrift.notices import Change, Notice
    from roledrift.records import RunHeader

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles
)
_SPACES = re.compile(r"[\s\u2028\u2029]+")
# C0, DEL and C1 steer the terminal, the bidirectional marks reorder a line, half a surrogate pair
# cannot be written at all.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOURS: dict[Severity | None, str] = {
    "failing": "31;1",
    "input problem": "35;1",
    "suspicious": "33",
    None: "32",
}
_CHANGES: dict[Change, str] = {
    "worsened": "worse",
    "revised": "another cause",
    "closed": "closed",
    "silent": "silent",
    "resumed": "resumed",
}
_LONGEST = 400
_SENTENCE = 1200


def printable(text: str, limit: int = _LONGEST) -> str:
    """Put ``text`` on one line of bounded length, without control or escape sequences."""
    plain = _STEERING.sub("", _SPACES.sub(" ", _SEQUENCES.sub("", text)))
    clean = " ".join(plain.split())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def say(lines: str, stream: TextIO | None = None) -> None:
    """Write whole lines without breaking a ``tqdm`` progress bar.

    Args:
        lines: What to write; nothing if it is empty.
        stream: Where to write; None is standard error. A stream that is gone is no error.
    """
    if lines:
        with suppress(OSError, ValueError):
            _write(stream or sys.stderr, lines)


class LogBetweenBars(logging.Handler):
    """Shows roledrift's log warnings between ``tqdm`` bars if the program set up no logging.

    Python would write them bare, and into a bar. A program that has set logging up gets them from
    its own handlers alone.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one warning."""
        if not logging.root.handlers:
            say(f"roledrift: {printable(record.getMessage(), _SENTENCE)}")

    @classmethod
    def install(cls) -> None:
        """Listen to roledrift's log. Calling it again does nothing."""
        log = logging.getLogger("roledrift")
        if not any(isinstance(handler, cls) for handler in log.handlers):
            log.addHandler(cls(logging.WARNING))


def _write(stream: TextIO, lines: str) -> None:
    coding = getattr(stream, "encoding", None) or "utf-8"
    with _between_bars(stream):
        stream.write(f"{lines}\n".encode(coding, "replace").decode(coding))
        stream.flush()


def _between_bars(stream: TextIO) -> AbstractContextManager[Any]:
    """Clear the bars of ``tqdm``, if the program has loaded it, and draw them again afterwards."""
    bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
    write: Any = getattr(bars, "external_write_mode", None)
    context: AbstractContextManager[Any] = nullcontext() if write is None else write(file=stream)
    return context


class ConsoleNotifier:
    """Writes notices to a text stream; a :class:`~roledrift.protocols.Notifier`.

    Args:
        stream: Where to write; None is standard error at the time of the notice.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def notify(self, notice: Notice, header: RunHeader) -> None:  # noqa: ARG002 (Notifier's shape)
        """Write one notice: a line for it and, when an incident opens, what to do first.

        Coloured only on a terminal, and not if ``NO_COLOR`` is set.
        """
        stream = self._stream or sys.stderr
        lines = _lines(notice)
        if _colours(stream):
            word, colour = _word(notice), _COLOURS[notice.severity]
            lines[0] = lines[0].replace(word, f"\x1b[{colour}m{word}\x1b[0m", 1)
        _write(stream, "\n".join(lines))


def _word(notice: Notice) -> str:
    """What a reader sees first: the severity, or that it is over."""
    over = "CLOSED" if notice.change == "closed" else "RESUMED"
    return notice.severity.upper() if notice.severity is not None else over


def line(notice: Notice) -> str:
    """Format a notice on one line without colours, for terminals and logs."""
    change = _CHANGES.get(notice.change, "")
    shown = f" ({change})" if change and change.upper() != _word(notice) else ""
    text = printable(notice.text, _SENTENCE)
    incident = notice.incident
    name = (
        ""
        if incident is None or notice.change == "followed"
        else f" [{printable(incident.finding)}, incident {incident.id}]"
    )
    return f"roledrift {_word(notice)}{shown} step {notice.step}: {text}{name}"


def _lines(notice: Notice) -> list[str]:
    lines = [line(notice)]
    advice = notice.incident.advice if notice.incident is not None else ()
    if notice.alert is not None and notice.incident is None:
        advice = notice.alert.advice
    if advice and notice.change not in ("followed", "closed", "resumed"):
        lines.append(f"  try: {printable(advice[0])}")
    if notice.stops:
        lines.append("  This finding stops the run.")
    return lines


def _colours(stream: TextIO) -> bool:
    return (
        not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and bool(getattr(stream, "isatty", lambda: False)())
    )
