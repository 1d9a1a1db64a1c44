"""What a source does not hold, which detectors that silences, and what would supply it next time.

Which detectors a quantity silences is derived from their cards: the first statistic that a card
reads is the one that its detector cannot do without.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roledrift.detect.catalogue import all_cards


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that verdicts are made from.

    Attributes:
        name: As people are told.
        held_by: Statistics of a role, columns of spans or totals; any of them will do.
        gives: What begins the names of further statistics that are made from it.
        instead: Statistics from which a detector still reaches a verdict without it.
    """

    name: str
    held_by: frozenset[str]
    gives: tuple[str, ...] = ()
    instead: frozenset[str] = frozenset()

    def silences(self, held: Collection[str]) -> tuple[str, ...]:
        """Detectors that reach no verdict without it, given what else is there."""
        if self.instead & frozenset(held):
            return ()
        first = ((card.name, card.reads[0]) for card in all_cards().cards if card.reads)
        return tuple(
            name for name, read in first if read in self.held_by or read.startswith(self.gives)
        )


LENGTHS = "lengths"
TEXTS = "texts"
REWARDS = "rewards"
LOGPROBS = "log-probabilities"
ENTROPY = "entropy"
VALIDATION = "validation"

QUANTITIES = (
    Quantity(LENGTHS, frozenset({"length"})),
    Quantity(TEXTS, frozenset({"text"}), ("words", "openers", "wrong_", "verdict_", "copied")),
    Quantity(REWARDS, frozenset({"reward"})),
    Quantity(
        LOGPROBS,
        frozenset({"rollout.chi2", "rollout.k3", "old.k3", "update.k3"}),
        ("update.", "rollout."),
    ),
    Quantity(ENTROPY, frozenset({"entropy"})),
    Quantity(
        VALIDATION,
        frozenset({"val_accuracy"}),
        instead=frozenset({"accuracy", "correct", "reward"}),
    ),
)

LIVE = "watch it live (docs/integrations)"


def missing(held: Collection[str]) -> list[Quantity]:
    """What nobody measured for a single role."""
    return [quantity for quantity in QUANTITIES if not quantity.held_by & frozenset(held)]


def notes(
    lacking: Collection[Quantity],
    supplies: Mapping[str, str],
    held: Collection[str],
    together: Collection[str] = (),
) -> dict[str, str]:
    """Two lines for the header; none if nothing is missing."""
    if not lacking:
        return {}
    unknown = [quantity for quantity in lacking if not quantity.held_by & frozenset(together)]
    silent = list(dict.fromkeys(name for quantity in unknown for name in quantity.silences(held)))
    by_switch: dict[str, list[str]] = {}
    for quantity in lacking:
        by_switch.setdefault(supplies.get(quantity.name, LIVE), []).append(quantity.name)
    absent = f"{', '.join(quantity.name for quantity in lacking)}, of single roles"
    return {
        "not in it": absent + (f"; so no verdict of {', '.join(silent)}" if silent else ""),
        "next time": "; ".join(
            f"{', '.join(names)}: {switch}" for switch, names in by_switch.items()
        ),
    }
