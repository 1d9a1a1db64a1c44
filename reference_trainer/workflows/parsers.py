"""The rules by which a run reads what selecting, judging and planning roles write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from reference_trainer.episodes import Parse
from reference_trainer.workflows.parse import parse_selection, parse_strategies, parse_verdict
from reference_trainer.workflows.released_parse import (
    released_selection,
    released_strategies,
    released_verdict,
)


class _Selection(Protocol):
    def __call__(self, text: str, *, candidates: int) -> Parse: ...


class _Strategies(Protocol):
    def __call__(self, text: str, *, most: int) -> tuple[Parse, tuple[str, ...]]: ...


@dataclass(frozen=True, slots=True)
class Parsers:
    """One set of rules.

    Attributes:
        selection: Which candidate a text chooses.
        verdict: Whether a text approves.
        strategies: What a plan proposes.
    """

    selection: _Selection = parse_selection
    verdict: Callable[[str], Parse] = parse_verdict
    strategies: _Strategies = parse_strategies


OWN = Parsers()
RELEASED = Parsers(released_selection, released_verdict, released_strategies)
