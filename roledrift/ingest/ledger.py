"""Every record that was skipped or odd: counted by what was wrong, with the first place named."""

from __future__ import annotations

from collections import Counter

_SHOWN = 12


class Ledger:
    """What went wrong while reading.

    A reader of a 500-step run cannot print a line per broken record, and must not be silent either:
    the count and the first place are kept, and end up in the notes of the imported run.
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}
        self._steps: dict[int, Counter[str]] = {}

    def skip(self, what: str, where: object = "", *, step: int | None = None, n: int = 1) -> None:
        """Count something that was left out or does not look as it should.

        Args:
            what: The same few words every time.
            where: File and line, or file.
            step: Step that it belongs to, if known; it then is a fault of that step's record.
            n: How many.
        """
        self._counts[what] += n
        self._first.setdefault(what, str(where))
        if step is not None:
            self._steps.setdefault(step, Counter())[what] += n

    def of_step(self, step: int) -> dict[str, int]:
        """What was counted for a step since the last call."""
        return dict(sorted(self._steps.pop(step, Counter()).items()))

    @property
    def counts(self) -> dict[str, int]:
        """How often each thing was counted."""
        return dict(sorted(self._counts.items()))

    def notes(self) -> dict[str, str]:
        """One line per kind of trouble, for the header."""
        lines = {
            f"odd: {what}": f"{count} times" + self._where(what)
            for what, count in self._counts.most_common(_SHOWN)
        }
        rest = len(self._counts) - _SHOWN
        if rest > 0:
            lines["odd: other"] = f"{rest} more kinds of trouble"
        return lines

    def _where(self, what: str) -> str:
        return f", first at {self._first[what]}" if self._first[what] else ""
