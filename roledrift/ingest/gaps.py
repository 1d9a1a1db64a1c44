"""What a source does not hold, which verdicts that costs, and what would supply it next time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quantity:
    """Something that verdicts are made from.

    Attributes:
        name: As it is said to people.
        held_by: Statistics of a role, columns of spans or totals; any of them will do.
        verdicts: Detectors that need it.
    """

    name: str
    held_by: frozenset[str]
    verdicts: tuple[str, ...]


LENGTHS = "lengths"
TEXTS = "texts"
REWARDS = "rewards"
LOGPROBS = "log-probabilities"
ENTROPY = "entropy"
VALIDATION = "validation"

QUANTITIES = (
    Quantity(LENGTHS, frozenset({"length"}), ("length_inflation", "sp_role_capture")),
    Quantity(TEXTS, frozenset({"text"}), ("diversity_collapse", "lazy_role")),
    Quantity(REWARDS, frozenset({"reward"}), ("signal_loss",)),
    Quantity(
        LOGPROBS,
        frozenset({"rollout.chi2", "rollout.k3", "old.k3", "update.k3"}),
        ("policy_drift", "gradient_amplification"),
    ),
    Quantity(ENTROPY, frozenset({"entropy"}), ("entropy_collapse", "echo_trap")),
    Quantity(VALIDATION, frozenset({"val_accuracy"}), ("accuracy_cliff",)),
)

LIVE = "watch it live (docs/integrations)"


def missing(held: Collection[str]) -> list[Quantity]:
    """What nobody measured for a single role.

    Args:
        held: Names of statistics, columns and totals that were there.
    """
    return [one for one in QUANTITIES if not one.held_by & frozenset(held)]


def notes(lacking: Collection[Quantity], supplies: Mapping[str, str]) -> dict[str, str]:
    """Two lines for the header; none if nothing is missing.

    Args:
        lacking: What is missing.
        supplies: By quantity, what supplies it in the framework that the source is from.
    """
    if not lacking:
        return {}
    verdicts = list(dict.fromkeys(name for one in lacking for name in one.verdicts))
    by_switch: dict[str, list[str]] = {}
    for one in lacking:
        by_switch.setdefault(supplies.get(one.name, LIVE), []).append(one.name)
    return {
        "not in it": f"{', '.join(one.name for one in lacking)}, of single roles; "
        f"so no verdict of {', '.join(verdicts)}",
        "next time": "; ".join(
            f"{', '.join(names)}: {switch}" for switch, names in by_switch.items()
        ),
    }
