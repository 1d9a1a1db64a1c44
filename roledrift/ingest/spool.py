"""Steps that wait until the whole of a log has been read."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import IO

from roledrift.records import Sample, StepRecord

Step = tuple[StepRecord, list[Sample]]

_MOST = 200_000
"""Statistics that wait in memory: some 50 MB."""


class Spool:
    """Keeps steps in order; the first ones in memory, from the first with texts on in a file.

    Args:
        file: An empty temporary file, which nobody else can open.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._first: list[Step] = []
        self._statistics = self._in_file = 0

    def add(self, step: Step) -> None:
        """Keep one more step."""
        record, samples = step
        self._statistics += sum(map(len, record.groups.values()))
        if samples or self._in_file or self._statistics > _MOST:
            pickle.dump(step, self._file, pickle.HIGHEST_PROTOCOL)
            self._in_file += 1
        else:
            self._first.append(step)

    def __iter__(self) -> Iterator[Step]:
        yield from self._first
        self._file.seek(0)
        for _ in range(self._in_file):
            yield pickle.load(self._file)
