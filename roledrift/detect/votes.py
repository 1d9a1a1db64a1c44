"""k-of-m votes: several weak signs, each of which healthy runs show too, counted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vote:
    """One sign.

    Attributes:
        sign: What is looked for; as a string it is words, with their numbers once there are any.
            Read while the vote lasts: of the many that are cast few are told.
        cast: True if it is there, False if it is not, None if it was not measured.
    """

    sign: object
    cast: bool | None


@dataclass(frozen=True, slots=True)
class Tally:
    """The count of some votes.

    Attributes:
        votes: All signs of a finding, also those that were not measured.
    """

    votes: Sequence[Vote]

    @property
    def yes(self) -> int:
        """Signs that are there."""
        return sum(vote.cast is True for vote in self.votes)

    @property
    def known(self) -> int:
        """Signs that were measured."""
        return sum(vote.cast is not None for vote in self.votes)

    @property
    def missing(self) -> tuple[str, ...]:
        """Signs that were not measured."""
        return tuple(str(vote.sign) for vote in self.votes if vote.cast is None)

    def __str__(self) -> str:
        there = "; ".join(str(vote.sign) for vote in self.votes if vote.cast)
        told = f"{self.yes} of {len(self.votes)} signs"
        told += f": {there}" if there else ""
        return told + (f" (not measured: {', '.join(self.missing)})" if self.missing else "")
