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
    if not any(of(one).chi2 or of(one).ppl or of(one).norm for one in summaries):
        return (
            Note(
                "Table 2, figures 5 and 6 need chi² or perplexity (log-probabilities in RoleBatch) "
                "or role gradients."
            ),
        )
    return (table_2(summaries), *figure_5(summaries), *figure_6(summaries))


def _whole(one: Summary) -> Course | None:
    """Gradient norm of the only policy of a shared run."""
    policies = [course for name, course in of(one).norm.items() if name.startswith("policy ")]
    return policies[0] if len(policies) == 1 else of(one).norm.get(EVERYONE)


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
        "chi²": [one for run in summaries for one in of(run).chi2.values()],
        "Perplexity": [one for run in summaries for one in of(run).ppl.values()],
    }
    for title, its in courses.items():
        names = sorted({statistic_name(one.source) for one in its})
        caption += f" {title} is: {', '.join(names)}." if names else ""
    title = "Table 2: peak over first"
    return Table(columns, tuple(rows), title, caption, key="table2", sortable=True)


def _rows(run: Summary) -> list[tuple[Cell, ...]]:
    groups = (EVERYONE,) if run.policy in ("SP", "SA") else run.roles
    rows = []
    for group in groups:
        chi2, ppl = of(run).chi2.get(group), of(run).ppl.get(group)
        norm = _whole(run) if group == EVERYONE else of(run).norm.get(group)
        if chi2 is None and ppl is None and norm is None:
            continue
        at = UNKNOWN if chi2 is None else Cell(str(chi2.peak_step), float(chi2.peak_step))
        rows.append(
            (
                Cell(run.name, href=run.href),
                Cell(run.policy),
                Cell("all" if group == EVERYONE else group),
                *(_ratio(one, run) for one in (chi2, ppl, norm)),
                at,
            )
        )
    return rows


def _ratio(one: Course | None, run: Summary) -> Cell:
    if one is None:
        return UNKNOWN
    if not math.isfinite(one.ratio):
        return Cell("–", note=f"first {number(one.first)}, peak {number(one.peak)}", href=run.href)
    return Cell(ratio(one.ratio), one.ratio, href=run.href)


def _largest(courses: Mapping[str, Course], run: Summary) -> float | None:
    """Over roles for IP, all together for SP."""
    if run.policy != "IP" and EVERYONE in courses:
        return courses[EVERYONE].peak
    found = [courses[role].peak for role in run.roles if role in courses]
    return max(found, default=None)


def _fall(run: Summary) -> float | None:
    """By how much the entropy of all roles fell."""
    entropy = of(run).entropy
    return None if entropy is None else entropy.first - entropy.low


def figure_5(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Largest chi², largest gradient norm and depth of the fall in entropy, per cell."""
    quantities = (
        ("chi2", "largest chi²", True, lambda one: _largest(of(one).chi2, one)),
        ("norm", "largest gradient norm", True, lambda one: _largest(of(one).norm, one)),
        ("entropy", "fall of entropy, nats (first - lowest)", False, _fall),
    )
    cells = grid(summaries, everything=True)
    found: list[Block] = []
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
            found.append(
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
    return tuple(found)


def figure_6(summaries: Sequence[Summary]) -> tuple[Block, ...]:
    """Diagnostics over their first value beside validation; the runs that moved most come first."""
    moved = sorted(
        (one for one in summaries if of(one).chi2 and one.validation and trained(one)),
        key=lambda one: (-max((_safe(c.ratio) for c in of(one).chi2.values()), default=0), one.key),
    )
    if not moved:
        return (Note("Figure 6 needs runs with both chi² and validation accuracy."),)
    panels: list[Panel] = []
    columns: dict[str, Mapping[int, float]] = {}
    for one in moved[:_RUNS]:
        groups = one.roles if one.policy == "IP" else (EVERYONE,)
        lines = []
        for group in groups:
            course = of(one).chi2.get(group)
            if course is None or course.first <= 0:
                continue
            label = "all roles" if group == EVERYONE else group
            curve = {step: value / course.first for step, value in course.curve.items()}
            colour = tone(group, one.roles)
            lines.append(Line(label, tuple(curve), tuple(curve.values()), tone=max(colour, 0)))
            columns[f"{one.name} {label} chi²"] = curve
        steps = [step for line in lines for step in line.steps] + list(one.validation)
        span = (min(steps), max(*steps, min(steps) + 1))
        # Always two panels: they stand side by side.
        absent = "" if lines else "no ratio: its first chi² is not above 0"
        title = f"{one.name}: chi² over first"
        panels.append(Panel(title, tuple(lines), span, log=True, absent=absent))
        steps_v = sorted(one.validation)
        line = Line("validation", tuple(steps_v), tuple(one.validation[s] for s in steps_v))
        panels.append(Panel(f"{one.name}: validation", (line,), span))
        columns[f"{one.name} validation"] = one.validation
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
