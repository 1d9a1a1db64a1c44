"""Progress of what takes longer than two seconds: a live line on a terminal, else now and then."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

_QUIET_SECONDS = 5.0


class Progress:
    """Counts up to ``total`` and says how long the rest will take.

    Args:
        title: What is being done.
        total: Number of steps.
    """

    def __init__(self, title: str, *, total: int) -> None:
        self._title = title
        self._total = total
        self._live = sys.stderr.isatty()
        self._start = time.monotonic()
        self._printed = self._start

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            sys.stderr.write("\n")

    def advance(self, done: int, note: str = "") -> None:
        """Say that ``done`` steps are done; printed at most every few seconds off a terminal."""
        now = time.monotonic()
        if done < self._total and now - self._printed < (0.2 if self._live else _QUIET_SECONDS):
            return
        self._printed = now
        rest = (now - self._start) / max(done, 1) * (self._total - done)
        line = f"{self._title}: {done}/{self._total}, {rest:.0f} s left  {note}"
        # \x1b[K clears what a longer line left behind.
        sys.stderr.write(f"\r{line}\x1b[K" if self._live else f"{line}\n")
        sys.stderr.flush()
