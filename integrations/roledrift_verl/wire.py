"""What the trainer asks of verl's workers in an update of the actor, and what they tell it.

Every process of verl loads this module, so it imports nothing heavy. The order travels as verl's
own batch-level settings do, the columns as its row tensors, and the reports as its metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roledrift.config import Config
    from roledrift.records import GramRecord
    from roledrift.spans import SpanTable
    from roledrift.workflow import Workflow

ROLE = "roledrift_role"
"""Column: index of the row's role; -1 for an unknown one, :data:`FILLING` for no row at all."""
SLOT = "roledrift_slot"
"""Column: slot within the role; 0 where it is not known."""
PROBLEM = "roledrift_problem"
"""Column: number of the problem, the same in every slot and on every rank."""
COLUMNS = (ROLE, SLOT, PROBLEM)

ORDER = "roledrift_order"
"""Setting of the batch: an :class:`Order`."""
REPORT = "roledrift_report"
"""Metric: a list of :class:`Report`."""

FILLING = -2
"""In :data:`ROLE`: a row that only fills up the batch."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be measured in one update.

    Attributes:
        step: Step of the trainer.
        workflow: Roles, slots and policies.
        config: Its tier and ``gradients`` say whether gradients are measured.
        slots: The column of slots is complete.
        problems: The column of problems is complete.
        clip: Clip range ``(low, high)`` of the ratio; None if the loss clips something else.
        temperature: Sampling temperature of the trainer's log-probabilities.
        rollout_temperature: That of the engine's.
        bypass: ``old_log_probs`` are the rollout engine's.
        on_policy: Nothing but this update lies between ``old_log_probs`` and its own.
        stretch: Measure gradients this many times more rarely than the configuration says.
    """

    step: int
    workflow: Workflow
    config: Config
    slots: bool = False
    problems: bool = False
    clip: tuple[float, float] | None = None
    temperature: float | None = None
    rollout_temperature: float | None = None
    bypass: bool = False
    on_policy: bool = True
    stretch: int = 1


@dataclass(frozen=True, slots=True)
class Report:
    """What one worker saw in one optimizer step.

    Attributes:
        step: Step of the trainer.
        number: Number of the optimizer step within the update, from 0.
        tables: Rows, with the comparison of the loss's two log-probabilities.
        gradients: The same on every rank; in the last optimizer step of an update.
        faults: What went wrong, with how often.
        coverage: What of the gradients is measured, or why nothing is.
    """

    step: int
    number: int
    tables: tuple[SpanTable, ...] = ()
    gradients: tuple[GramRecord, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    coverage: str = ""
