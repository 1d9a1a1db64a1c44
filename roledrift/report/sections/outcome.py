"""Outcome: reward and validation beside the alerts. Order in time, never cause."""

from __future__ import annotations

from roledrift.report.curves import limits, marks, odd_values, panel, table
from roledrift.report.model import Block, Cell, Figure, Line, Note, Prose, Section, Table
from roledrift.report.numbers import average, cell, count, number
from roledrift.report.view import View, thinned


def build(view: View) -> Section:
    """The outcome section."""
    blocks: list[Block] = []
    curves = {"reward": view.reward, "validation accuracy": view.validation}
    there = {name: curve for name, curve in curves.items() if curve}
    if there:
        blocks.append(Prose(" ".join(_sentences(view)) or "Reward and validation over the run."))
        blocks.append(_figure(view, there))
        blocks.append(_table(there))
    if not view.reward:
        blocks.append(
            Note("No reward: pass totals={'reward': ...} to end_step, or reward_B in RoleBatch.")
        )
    if not view.validation:
        blocks.append(
            Note(
                "No validation accuracy: pass totals={'val_accuracy': ...} to end_step at the "
                "steps where the host validates."
            )
        )
    return Section("outcome", "Outcome", tuple(blocks))


def best(curve: dict[int, float]) -> tuple[int, float] | None:
    """Step and value of the highest value; the first of equals."""
    if not curve:
        return None
    step = max(sorted(curve), key=lambda one: curve[one])
    return step, curve[step]


def first_drop(curve: dict[int, float]) -> tuple[int, float, float] | None:
    """First step at which the value falls below half of the best so far, as step, best, value.

    Half is a deliberately coarse mark of damage that noise does not reach.
    """
    top = None
    for step in sorted(curve):
        value = curve[step]
        if top is not None and top > 0 and value < 0.5 * top:
            return step, top, value
        top = value if top is None else max(top, value)
    return None


def _sentences(view: View) -> list[str]:
    found = []
    top = best(view.validation)
    if top is not None:
        last = view.validation[max(view.validation)]
        found.append(
            f"Best validation accuracy {number(top[1])} at step {top[0]}; "
            f"{number(last)} at the last validation (step {max(view.validation)})."
        )
    if view.findings:
        # What a watcher would have acted on is the first alert, not the one that ended worst.
        raised = min(one.raised for one in view.findings)
        alert = f"the {'first ' if len(view.findings) > 1 else ''}alert at step {raised}"
        if top is not None and raised != top[0]:
            order = "preceded" if raised < top[0] else "came after"
            found.append(
                f"{alert[0].upper()}{alert[1:]} {order} the best validation by "
                f"{abs(top[0] - raised)} steps."
            )
        for name, curve in (("validation accuracy", view.validation), ("reward", view.reward)):
            drop = first_drop(curve)
            if drop is None:
                continue
            step, high, value = drop
            order = (
                f"preceded it by {step - raised} steps"
                if raised < step
                else ("came at the same step" if raised == step else f"came {raised - step} later")
            )
            found.append(
                f"At step {step} the {name} first fell below half of its best "
                f"({number(high)} → {number(value)}); {alert} {order}."
            )
    return found


def _figure(view: View, curves: dict[str, dict[int, float]]) -> Figure:
    panels = []
    for name, curve in curves.items():
        kept = thinned(curve)
        line = Line(name, tuple(kept), tuple(kept.values()))
        panels.append(panel(view, name, [line], marks=marks(view)))
    odd = odd_values(list(curves.values()), log=False)
    together = [one for one in panels if one.lines]
    shared = [limits([one], log=False, share=False) for one in together]
    return Figure(
        f"{view.key}-outcome-figure",
        "Reward and validation accuracy",
        "Healthy: both rise or stay level. Reward that rises while validation falls is the "
        "pattern to look for. Lines mark the onsets of alerts."
        + (f" Not drawn: {odd}." if odd else ""),
        tuple(
            panel(view, one.title, one.lines, marks=one.marks, limits=limit)
            for one, limit in zip(together, shared, strict=True)
        ),
        table(curves, [mark.step for mark in marks(view)]),
    )


def _table(curves: dict[str, dict[int, float]]) -> Table:
    rows = []
    for name, curve in curves.items():
        top = best(curve)
        steps = sorted(curve)
        if top is not None:
            rows.append(
                (
                    Cell(name),
                    cell(curve[steps[0]]),
                    cell(top[1]),
                    count(top[0]),
                    cell(curve[steps[-1]]),
                    cell(average(list(curve.values()))),
                    count(len(steps)),
                )
            )
    columns = ("", "first", "best", "best at step", "last", "mean", "points")
    return Table(columns, tuple(rows))
