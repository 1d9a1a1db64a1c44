"""Alerts on the terminal, one or two lines each."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from roledrift.records import Alert, Level, RunHeader

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC: titles
)
_SPACES = re.compile(r"[\s\u2028\u2029]+")
# C0, DEL and C1 steer the terminal, the bidirectional marks reorder a line, half a surrogate pair
# cannot be written at all.
_STEERING = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOURS: dict[Level, str] = {"INFO": "36", "WARN": "33", "ERROR": "31;1"}
_LONGEST = 400


def printable(text: str, limit: int = _LONGEST) -> str:
    """``text`` on one line, safe for a terminal: no control or escape sequences, bounded length."""
    plain = _STEERING.sub("", _SPACES.sub(" ", _SEQUENCES.sub("", text)))
    clean = " ".join(plain.split())
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


class ConsoleNotifier:
    """Writes alerts to a text stream; a :class:`~roledrift.protocols.Notifier`.

    Args:
        stream: Where to write; None is standard error at the time of the alert.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def notify(self, alert: Alert, header: RunHeader) -> None:  # noqa: ARG002 (Notifier's shape)
        """Write one alert: a line with the finding, and one with the first advice if there is any.

        Coloured only on a terminal, and not if ``NO_COLOR`` is set.
        """
        stream = self._stream or sys.stderr
        lines = _lines(alert)
        if _colours(stream):
            level = alert.level
            lines[0] = lines[0].replace(level, f"\x1b[{_COLOURS[level]}m{level}\x1b[0m", 1)
        coding = getattr(stream, "encoding", None) or "utf-8"
        text = "".join(line + "\n" for line in lines)
        stream.write(text.encode(coding, "replace").decode(coding))
        stream.flush()


def _lines(alert: Alert) -> list[str]:
    role = "all roles" if alert.role == "*" else printable(alert.role)
    title = printable(alert.title)
    for lead in (f"{role}: ", f"{role} "):
        title = title.removeprefix(lead)
    state = " closed" if alert.state == "closed" else ""
    stops = " stops the run" if alert.stops and not state else ""
    head = f"roledrift {alert.level} step {alert.step} {role}: {title}"
    lines = [f"{head} [{printable(alert.finding)} {printable(alert.id)}]{state}{stops}"]
    if alert.advice and not state:
        lines.append(f"  try: {printable(alert.advice[0])}")
    return lines


def _colours(stream: TextIO) -> bool:
    return (
        not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
        and bool(getattr(stream, "isatty", lambda: False)())
    )
