"""Records in a row of which something holds."""

from __future__ import annotations


class Streak:
    """How many records in a row something has held, and since when."""

    def __init__(self) -> None:
        self.n = 0
        self.onset: int | None = None
        """First step of the streak; None without one."""

    def observe(self, step: int, holds: bool) -> int:
        """Take one record; the length of the streak."""
        self.onset = (step if self.onset is None else self.onset) if holds else None
        self.n = self.n + 1 if holds else 0
        return self.n
