"""Who is judged: every role, and all roles together where a log has their numbers only together."""

from __future__ import annotations

from functools import lru_cache

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.evidence.scales import ABSURD
from roledrift.detect.evidence.streams import Reader
from roledrift.judgement import Verdict
from roledrift.records import Stat, StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow


def units(workflow: Workflow) -> tuple[str, ...]:
    """The roles; of several roles, all together too."""
    roles = workflow.role_names
    return roles if len(roles) == 1 else (*roles, EVERYONE)


def run_unit(workflow: Workflow) -> str:
    """Whom a verdict about the run is about: its only role, or all together."""
    roles = workflow.role_names
    return roles[0] if len(roles) == 1 else EVERYONE


def mean_of(record: StepRecord, unit: str, name: str) -> float | None:
    """The mean of a statistic; of all roles together only if no role has it of its own."""
    mean = record.mean(unit, name)
    return None if mean is None or _of_roles(record, unit, name) else mean


def stat_of(record: StepRecord, unit: str, name: str) -> Stat | None:
    """The whole statistic, likewise."""
    stat = record.stat(unit, name)
    return None if stat is None or _of_roles(record, unit, name) else stat


def _of_roles(record: StepRecord, unit: str, name: str) -> bool:
    return unit == EVERYONE and any(
        name in stats for group, stats in record.groups.items() if group != EVERYONE
    )


def known(record: StepRecord, unit: str, name: str) -> float | None:
    """The same, if it is a number that can be reckoned with."""
    value = mean_of(record, unit, name) if unit == EVERYONE else record.mean(unit, name)
    return value if value is not None and -ABSURD < value < ABSURD else None


@lru_cache(maxsize=256)
def reader(name: str) -> Reader:
    """Reads a statistic for a stream; the same object for the same name, so streams are shared."""

    def read(record: StepRecord, unit: str) -> float | None:
        return known(record, unit, name)

    return read


def not_logged(detector: str, workflow: Workflow, what: str) -> Verdict:
    """That the run does not log what a detector is about, so that it does not apply."""
    return no_verdict(detector, run_unit(workflow), f"does not apply: no {what} was recorded")


def too_short(detector: str, workflow: Workflow, records: int) -> Verdict:
    """That the run is too short for what a detector is about."""
    return no_verdict(
        detector, run_unit(workflow), f"does not apply: to runs of fewer than {records} steps"
    )
