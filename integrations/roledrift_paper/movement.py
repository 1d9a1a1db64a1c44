"""Table 2, figures 5 and 6: how much policies moved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.draw.palette import tone
from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.model import Block, Figure, Line, Note, Panel
from roledrift.report.numbers import number, ratio
from roledrift.report.sections.names import statistic_name
from roledrift.report.sweep.summary import Summary
from roledrift.sums import EVERYONE
from roledrift_paper.grid import POLICIES, grid, legend, trained
from roledrift_paper.measured import Course, of
from roledrift_paper.step_table import step_table

_RUNS = 6


def blocks(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """What the runs allow."""
    if not any(of(summary).chi2 or of(summary).ppl or of(summary).norm for summary in summaries):
        return (
            Note(
                "Table 2, figures 5 and 6 need chi² or perplexity (log-probabilities in RoleBatch) "
                "or role gradients."
            ),
        )
    return (table_2(summaries), *figure_5(summaries), *figure_6(summaries))


def _policy_norm(run: Summary) -> Course | None:
    """Gradient norm of the only policy of a shared run."""
    policies = [course for name, course in of(run).norm.items() if name.startswith("policy ")]
    return policies[0] if len(policies) == 1 else of(run).norm.get(EVERYONE)


def table_2(summaries: Sequence[Summary]) -> Table:
    """Peak over first per role (IP) or for all roles together (SP)."""
    rows = []
    for policies in grid(summaries, everything=True).values():
        for runs in policies.values():
            rows += [row for run in runs for row in _rows(run)]
    columns = ("run", "policy", "role", "chi²", "perplexity", "gradient norm", "step of chi² peak")
    caption = (
        "Largest over first value in the run; a first value of 0 gives no ratio. One row per role "
        "for IP, one shared row for SP."
    )
    courses = {
        "chi²": [chi2 for run in summaries for chi2 in of(run).chi2.values()],
        "Perplexity": [ppl for run in summaries for ppl in of(run).ppl.values()],
    }
    for title, measured in courses.items():
        names = sorted({statistic_name(course.source) for course in measured})
        caption += f" {title} is: {', '.join(names)}." if names else ""
    title = "Table 2: peak over first"
    return Table(columns, tuple(rows), title, caption, key="table2", sortable=True)


def _rows(run: Summary) -> list[tuple[Cell, ...]]:
    groups = (EVERYONE,) if run.policy in ("SP", "SA") else run.roles
    rows = []
    for group in groups:
        chi2, ppl = of(run).chi2.get(group), of(run).ppl.get(group)
        norm = _policy_norm(run) if group == EVERYONE else of(run).norm.get(group)
        if chi2 is None and ppl is None and norm is None:
            continue
        at = UNKNOWN if chi2 is None else Cell(str(chi2.peak_step), float(chi2.peak_step))
        rows.append(
            (
                Cell(run.name, href=run.href),
                Cell(run.policy),
                Cell("all" if group == EVERYONE else group),
                *(_ratio(measured, run) for measured in (chi2, ppl, norm)),
                at,
            )
        )
    return rows


def _ratio(measured: Course | None, run: Summary) -> Cell:
    if measured is None:
        return UNKNOWN
    if not math.isfinite(measured.ratio):
        return Cell(
            "–", note=f"first {number(measured.first)}, peak {number(measured.peak)}", href=run.href
        )
    return Cell(ratio(measured.ratio), measured.ratio, href=run.href)


def _largest(courses: Mapping[str, Course], run: Summary) -> float | None:
    """Over roles for IP, all together for SP."""
    if run.policy != "IP" and EVERYONE in courses:
        return courses[EVERYONE].peak
    peaks = [courses[role].peak for role in run.roles if role in courses]
    return max(peaks, default=None)


def _fall(run: Summary) -> float | None:
    """By how much the entropy of all roles fell."""
    entropy = of(run).entropy
    return None if entropy is None else entropy.first - entropy.low


def figure_5(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Largest chi², largest gradient norm and depth of the fall in entropy, per cell."""
    quantities = (
        ("chi2", "largest chi²", True, lambda run: _largest(of(run).chi2, run)),
        ("norm", "largest gradient norm", True, lambda run: _largest(of(run).norm, run)),
        ("entropy", "fall of entropy, nats (first - lowest)", False, _fall),
    )
    cells = grid(summaries, everything=True)
    plots: list[Block] = []
    for key, title, log, read in quantities:
        rows, data = [], []
        for at, policies in cells.items():
            dots = []
            for policy, runs in policies.items():
                for run in runs:
                    value = read(run)
                    if value is not None and math.isfinite(value):
                        name = f"{run.name}: {number(value)}"
                        dots.append(Dot(value, name, tone=POLICIES[policy], href=run.href))
                        data.append((Cell(run.name, href=run.href), Cell(number(value), value)))
            if dots:
                rows.append((at.label, tuple(dots)))
        if rows:
            plots.append(
                Plot(
                    f"figure5-{key}",
                    f"Figure 5: {title}",
                    "Each point is a run. Healthy: shared and isolated policies lie close "
                    "together. For IP the largest of its roles, which the paper leaves open."
                    + (" Values at or below 0 are not drawn." if log else ""),
                    (title, ""),
                    rows=tuple(rows),
                    keys=legend(cells),
                    log=log,
                    table=Table(("run", title), tuple(data), "Data", collapsed=True),
                )
            )
    return tuple(plots)


def figure_6(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Diagnostics over their first value beside validation; the runs that moved most come first."""
    moved = sorted(
        (
            summary
            for summary in summaries
            if of(summary).chi2 and summary.validation and trained(summary)
        ),
        key=lambda run: (-max((_safe(c.ratio) for c in of(run).chi2.values()), default=0), run.key),
    )
    if not moved:
        return (Note("Figure 6 needs runs with both chi² and validation accuracy."),)
    panels: list[Panel] = []
    columns: dict[str, Mapping[int, float]] = {}
    for run in moved[:_RUNS]:
        groups = run.roles if run.policy == "IP" else (EVERYONE,)
        lines = []
        for group in groups:
            course = of(run).chi2.get(group)
            if course is None or course.first <= 0:
                continue
            label = "all roles" if group == EVERYONE else group
            curve = {step: value / course.first for step, value in course.curve.items()}
            colour = tone(group, run.roles)
            lines.append(Line(label, tuple(curve), tuple(curve.values()), tone=max(colour, 0)))
            columns[f"{run.name} {label} chi²"] = curve
        steps = [step for line in lines for step in line.steps] + list(run.validation)
        span = (min(steps), max(*steps, min(steps) + 1))
        # Always two panels: they stand side by side.
        absent = "" if lines else "no ratio: its first chi² is not above 0"
        title = f"{run.name}: chi² over first"
        panels.append(Panel(title, tuple(lines), span, log=True, absent=absent))
        steps_v = sorted(run.validation)
        line = Line("validation", tuple(steps_v), tuple(run.validation[s] for s in steps_v))
        panels.append(Panel(f"{run.name}: validation", (line,), span))
        columns[f"{run.name} validation"] = run.validation
    more = f" The {_RUNS} of {len(moved)} that moved most." if len(moved) > _RUNS else ""
    caption = "Healthy: chi² stays near its first value. Look for chi² that rises before accuracy "
    return (
        Figure(
            "figure6",
            "Figure 6: movement beside validation",
            caption + "falls." + more,
            tuple(panels),
            step_table(columns),
        ),
    )


def _safe(value: float) -> float:
    return value if math.isfinite(value) else 0.0
