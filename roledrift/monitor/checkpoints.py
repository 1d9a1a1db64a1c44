"""The checkpoints of a run that can still be returned to, as far as the host reported them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from roledrift.records import Checkpoint

MOST = 32
"""Checkpoints that a record names at most."""


class Checkpoints:
    """Collects the checkpoints that a host writes, and forgets those it has deleted."""

    def __init__(self) -> None:
        self._known: dict[int, Checkpoint] = {}
        self._added: list[Checkpoint] = []

    def note(self, step: int, path: str | Path) -> None:
        """Note that the host has written a checkpoint after ``step`` steps."""
        self._added.append(Checkpoint(int(step), str(path)))

    def recall(self, checkpoints: Iterable[Checkpoint]) -> None:
        """Add the checkpoints that an earlier segment of the run recorded."""
        self._known.update((checkpoint.step, checkpoint) for checkpoint in checkpoints)

    def news(self) -> tuple[Checkpoint, ...]:
        """Return the newest existing checkpoints by step; empty if none was written since."""
        added, self._added = self._added, []
        if not added:
            return ()
        self.recall(added)
        existing = [checkpoint for checkpoint in self._known.values() if _is_there(checkpoint.path)]
        existing = sorted(existing, key=lambda checkpoint: checkpoint.step)[-MOST:]
        self._known = {checkpoint.step: checkpoint for checkpoint in existing}
        return tuple(existing)


def _is_there(path: str) -> bool:
    """False only for what is known to be gone: nobody is asked about a URL."""
    return "://" in path or os.path.exists(path)
