"""Tables 1 and 3, figures 2, 3 and 4: accuracies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roledrift.records import NOTE_TRANSFER
from roledrift.report.cells import Cell, Table
from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.model import Block, Figure, Note, Panel
from roledrift.report.numbers import percent
from roledrift.report.sweep.bands import banded
from roledrift.report.sweep.summary import Summary
from roledrift_paper.grid import (
    POLICIES,
    Place,
    base,
    grid,
    legend,
    mean,
    of_block,
    over_seeds,
    peak,
    place,
    points,
)
from roledrift_paper.step_table import step_table

Cells = Mapping[Place, Mapping[str, list[Summary]]]


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """What the runs allow."""
    cells = grid(summaries)
    if not any(summary.validation for summary in summaries):
        note = (
            "Tables 1 and 3, figures 2 to 4 need validation accuracy (totals={'val_accuracy': …})."
        )
        return (Note(note),)
    if not cells:
        return (
            Note("Tables 1 and 3, figures 2 to 4 need runs that were not disturbed on purpose."),
        )
    return (table_1(cells), table_3(summaries, cells), figure_2(cells), figure_3(cells),
            figure_4(cells))  # fmt: skip


def table_1(cells: Cells) -> Table:
    """Peak validation accuracy per workflow, with the single-role control of its block."""
    rows = []
    sets = len({at.validated for at in cells}) > 1
    for at, policies in cells.items():
        if set(policies) == {"SA"}:
            continue
        runs = [run for policy_runs in policies.values() for run in policy_runs]
        single = over_seeds(of_block(cells, at), peak, ".3f")
        isolated, shared = (
            over_seeds(policies.get(policy, ()), peak, ".3f") for policy in ("IP", "SP")
        )
        rows.append(
            (
                *(Cell(at.task or "–"), Cell(at.scale or "–"), Cell(at.workflow)),
                *((Cell(at.validated or "–"),) if sets else ()),
                over_seeds(runs, base, ".3f"),
                *(single, isolated, shared, points(isolated, single), points(shared, single)),
            )
        )
    columns = (
        *("task", "scale", "workflow"),
        *(("validated on",) if sets else ()),
        *("base", "SA-RL", "IP", "SP", "IP-SA, pp", "SP-SA, pp"),
    )
    caption = (
        "Largest validation accuracy over the checkpoints of a run. IP: a policy per role; SP: one "
        "shared policy; SA-RL: a single role trained alone on the same task and scale; base: at "
        "step 0."
    )
    title = "Table 1: peak validation accuracy"
    return Table(columns, tuple(rows), title, caption, key="table1")


def table_3(summaries: Sequence[Summary], cells: Cells) -> Block:
    """Accuracy of the workflows with an adapter that was trained on a single role."""
    transfers = [summary for summary in summaries if NOTE_TRANSFER in summary.notes]
    if not transfers:
        return Note(
            "Table 3 needs runs that evaluate a single-role adapter inside a workflow, marked with "
            "notes={'transfer': 'generator'} in their header."
        )
    rows = []
    for transfer in sorted(transfers, key=lambda run: (run.task, run.scale, run.workflow, run.key)):
        single = over_seeds(of_block(cells, place(transfer)), peak, ".3f")
        value = over_seeds([transfer], peak, ".3f")
        names = (Cell(transfer.task or "–"), Cell(transfer.scale or "–"), Cell(transfer.workflow))
        rows.append((*names, Cell(transfer.notes[NOTE_TRANSFER]), value, single))
    columns = ("task", "scale", "workflow", "adapter on", "accuracy", "SA-RL")
    title = "Table 3: a single-role adapter inside the workflows"
    return Table(columns, tuple(rows), title, "The other roles use the base model.", key="table3")


def figure_2(cells: Cells) -> Block:
    """Gain over the base model per cell."""
    rows = []
    for at, policies in cells.items():
        dots = []
        for policy, runs in policies.items():
            for run in runs:
                top, start = peak(run), base(run)
                if top is not None and start is not None:
                    name = f"{run.name}: {100 * (top - start):+.1f} pp"
                    dots.append(
                        Dot(100 * (top - start), name, tone=POLICIES[policy], href=run.href)
                    )
        if dots:
            rows.append((at.label, tuple(dots)))
    if not rows:
        return Note("Figure 2 needs validation accuracy of the base model (at step 0).")
    data = tuple((Cell(label), Cell("; ".join(dot.name for dot in dots))) for label, dots in rows)
    return Plot(
        "figure2",
        "Figure 2: peak accuracy minus base",
        "Each point is a run. Healthy: to the right of the line at 0.",
        ("percentage points", ""),
        rows=tuple(rows),
        keys=legend(cells),
        zero=True,
        table=Table(("cell", "runs"), data, "Data", collapsed=True),
    )


def figure_3(cells: Cells) -> Block:
    """Isolated against shared policies."""
    matched = {
        at: policies for at, policies in cells.items() if "IP" in policies and "SP" in policies
    }
    workflows = sorted({at.workflow for at in matched})
    tasks = sorted({at.task for at in matched})
    scales = sorted({at.scale for at in matched}, key=_size)
    dots, rows = [], []
    for at, policies in matched.items():
        a, b = (
            mean([peak(run) or math.nan for run in policies[policy]]) for policy in ("IP", "SP")
        )
        if a is None or b is None:
            continue
        name = f"{at.label}: IP {percent(a)}, SP {percent(b)}"
        size = 3.0 + 1.2 * scales.index(at.scale)
        href = policies["IP"][0].href
        shape = workflows.index(at.workflow)
        dots.append(Dot(a, name, b, tasks.index(at.task), shape, size, href))
        rows.append((Cell(at.label, href=href), Cell(percent(a), a), Cell(percent(b), b)))
    if not dots:
        return Note("Figure 3 needs validated runs of one cell with both IP and SP.")
    keys = [(f"{workflow} (shape)", -1, index) for index, workflow in enumerate(workflows)]
    keys += [(f"{task or 'task'} (colour)", index, 0) for index, task in enumerate(tasks)]
    return Plot(
        "figure3",
        "Figure 3: isolated against shared policies",
        "Above the diagonal the shared policy is better. Healthy: near the diagonal. Size: scale. "
        "Means over seeds.",
        ("IP, peak validation accuracy", "SP, peak validation accuracy"),
        dots=tuple(dots),
        keys=tuple(keys),
        diagonal=True,
        table=Table(("cell", "IP", "SP"), tuple(rows), "Data", collapsed=True),
    )


def _size(scale: str) -> float:
    digits = "".join(character for character in scale if character.isdigit() or character == ".")
    try:
        return float(digits)
    except ValueError:
        return math.inf


def figure_4(cells: Cells) -> Figure:
    """Reward in training and validation accuracy per workflow; bands over seeds."""
    panels: list[Panel] = []
    columns: dict[str, Mapping[int, float]] = {}
    for at, policies in list(cells.items())[:9]:
        for title, read in (("reward", "reward"), ("validation", "validation")):
            lines = []
            for policy, runs in policies.items():
                line = banded(policy, [getattr(run, read) for run in runs], POLICIES[policy])
                if line is not None:
                    lines.append(line)
                    columns[f"{at.label} {policy} {title}"] = dict(
                        zip(line.steps, line.values, strict=True)
                    )
            if lines:
                span = (min(line.steps[0] for line in lines), max(line.steps[-1] for line in lines))
                panels.append(
                    Panel(
                        f"{at.label}: {title}", tuple(lines), (span[0], max(span[1], span[0] + 1))
                    )
                )
    more = f" The first 9 of {len(cells)} cells." if len(cells) > 9 else ""
    return Figure(
        "figure4",
        "Figure 4: reward and validation over steps",
        "Mean over seeds; the band spans the seeds. Healthy: both rise or stay level." + more,
        tuple(panels),
        step_table(columns),
    )
