"""What a run is called in the end: the one rule for every output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from roledrift.judgement import Incident, Severity, Verdict

Outcome = Severity | Literal["clean", "no verdict"]
"""Worst first: ``failing``, ``input problem``, ``suspicious``, ``no verdict``, ``clean``."""

OUTCOMES: tuple[Outcome, ...] = ("failing", "input problem", "suspicious", "no verdict", "clean")


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The outcome of a run and the sentence that says it.

    Attributes:
        outcome: One of :data:`OUTCOMES`.
        sentence: The headline: of the first incident, or why there is none.
        reached: Verdicts that were reached; ``applicable``: those that could have been.
        incident: The incident that the sentence is about, if there is one.
        needs: What is missing for the verdicts that were not reached.
    """

    outcome: Outcome
    sentence: str
    reached: int
    applicable: int
    incident: Incident | None = None
    needs: tuple[str, ...] = ()


def conclude(verdicts: Sequence[Verdict], incidents: Sequence[Incident], steps: int) -> Conclusion:
    """Say what a run is.

    Incidents that have closed count too, see :attr:`roledrift.judgement.Incident.outcome`. Without
    an incident, a run of which less than half of the applicable verdicts were reached has no
    verdict: missing evidence is never green.
    """
    reached = sum(verdict.state != "no verdict" for verdict in verdicts)
    applicable = sum(verdict.applies for verdict in verdicts)
    needs = tuple(
        sorted({need for verdict in verdicts if verdict.applies for need in verdict.needs})
    )
    if incidents:
        first = incidents[0]
        return Conclusion(first.outcome, first.sentence, reached, applicable, first, needs)
    if steps == 0:
        return Conclusion("no verdict", "No step was recorded.", 0, applicable, needs=needs)
    if 2 * reached < applicable or not reached:
        missing = f" Not measured: {', '.join(needs[:4])}." if needs else ""
        sentence = f"No verdict: {reached} of {applicable} verdicts were reached.{missing}"
        return Conclusion("no verdict", sentence, reached, applicable, needs=needs)
    sentence = f"Nothing found in {steps} steps ({reached} of {applicable} verdicts reached)."
    return Conclusion("clean", sentence, reached, applicable, needs=needs)
