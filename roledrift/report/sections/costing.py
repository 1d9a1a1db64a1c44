"""Section "What it cost": what the run has cost so far, and what that estimate rests on."""

from __future__ import annotations

from roledrift.costs import Costs, costs
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Cell, Prose, Section, Table
from roledrift.report.numbers import cell, percent

_UNKNOWN = Cell("unknown")
_ALL_ALIKE = "if every rollout costs as much"

PLACE = 70


def build(run: JudgedRun) -> Section:
    """Build the section."""
    estimate = costs(run.records, run.header, run.config.costs)
    blocks = (Prose(estimate.sentence), _table(estimate))
    return Section("costs", "What it cost", blocks, "an estimate")


def _table(estimate: Costs) -> Table:
    basis = estimate.basis
    rows = [
        ("optimizer steps", cell(estimate.steps), ""),
        ("rollouts that moved nothing", _share(estimate.idle), basis["idle"]),
        *((f"of these: {why}", _share(share), "") for why, share in estimate.idle_by.items()),
        (
            "responses truncated",
            _share(estimate.truncated),
            "they move nothing either if the trainer masks them",
        ),
        ("wall time, h", _amount(estimate.hours), basis["hours"]),
        ("GPUs", _amount(estimate.devices), basis["devices"]),
        ("GPU hours", _amount(estimate.gpu_hours), "wall time times GPUs"),
        ("GPU hours that moved nothing", _amount(estimate.idle_gpu_hours), _ALL_ALIKE),
        ("cost of a GPU hour", _amount(estimate.gpu_hour_cost), basis["gpu_hour_cost"]),
        ("cost", _amount(estimate.money), "GPU hours times their cost"),
    ]
    return Table(
        ("estimate", "value", "what it rests on"),
        tuple((Cell(what), value, Cell(why)) for what, value, why in rows),
    )


def _share(value: float | None) -> Cell:
    return _UNKNOWN if value is None else Cell(percent(value), value)


def _amount(value: float | None) -> Cell:
    return _UNKNOWN if value is None else cell(value)
