"""``roledrift compare``: compare two runs, paired by step and by prompt where possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.codec import plain
from roledrift.errors import RoleDriftError
from roledrift.notify.console import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roledrift.report.judged_run import JudgedRun

RESAMPLES = 2_000
_FEWEST = 5
_WIDE = 100
_OF_TEXTS = " of kept texts"
_QUANTITIES = ("length", "reward", "entropy", "ppl", "update.k3", "rollout.chi2", "truncated")
"""Means of a step; the same as on a page."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity in both runs.

    Attributes:
        a: Mean in the first run over what is paired; likewise ``b``.
        low: Lower end of the 95 % bootstrap interval of ``b - a``, NaN if there are too few values;
            likewise ``high``.
        pairs: Number of pairs, or of values of the shorter run where nothing pairs.
        paired: ``step``, ``prompt and step``, or ``no``.
        a_last: Value at the last step of the first run that has one, paired or not: what the longer
            run did in the end is in no pair. NaN for texts; likewise ``b_last``.
        a_last_step: That step; likewise ``b_last_step``.
    """

    role: str
    quantity: str
    a: float
    b: float
    low: float
    high: float
    pairs: int
    paired: str
    a_last: float = math.nan
    b_last: float = math.nan
    a_last_step: int | None = None
    b_last_step: int | None = None

    @property
    def of_texts(self) -> bool:
        """Whether it is one of kept texts, and not of the statistics of steps."""
        return self.quantity.endswith(_OF_TEXTS)

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def compare(first: str, second: str, *, out: Path | None = None, as_json: bool = False) -> int:
    """Compare two runs and print the differences.

    Returns:
        The exit code: 0, 2 if a run cannot be read, 3 if the two share nothing to compare.
    """
    from roledrift.report.build import build_report
    from roledrift.report.judged_run import load
    from roledrift.report.write import write_report

    try:
        with opened((first, second)) as places:
            a, b = (load(Path(at), f"run{n}") for n, (_, at) in enumerate(places, start=1))
            pages = () if out is None else write_report(build_report([at for _, at in places]), out)
    except (RoleDriftError, OSError) as error:
        gone = next((path for path in (first, second) if not Path(path).exists()), None)
        return console.fail(console.failure_of(error, gone), as_json=as_json)
    for path, view in ((first, a), (second, b)):
        for problem in view.problems:
            console.say(f"{path}: {problem}")
    differing = differences(a, b)
    changed = _changed(a, b)
    left_out = _unpaired(a, b)
    for letter, other, steps in zip("AB", "BA", left_out, strict=True):
        if steps and any(difference.paired == "step" for difference in differing):
            console.say(f"{_counted(steps)} of {letter} left out: {other} has no such steps")
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.compare/2",
                "a": first,
                "b": second,
                "settings": [dict(zip(("name", "a", "b"), row, strict=True)) for row in changed],
                "differences": [
                    {**asdict(difference), "clear": difference.clear} for difference in differing
                ],
                "left_out": dict(zip("ab", map(list, left_out), strict=True)),
                "files": [str(file) for file in pages],
                "outcomes": {"a": a.conclusion.outcome, "b": b.conclusion.outcome},
                "incidents": [
                    {"run": letter, "name": view.name, "incident": plain(incident)}
                    for letter, view in (("a", a), ("b", b))
                    for incident in view.replay.incidents
                ],
            }
        )
    else:
        _print((first, second), (a, b), differing, changed)
        for file in pages:
            console.console().print(str(file), soft_wrap=True)
    return console.CLEAN if differing else console.INCONCLUSIVE


def _unpaired(a: JudgedRun, b: JudgedRun) -> tuple[list[int], list[int]]:
    """Steps that only the first run has, and those that only the second has."""
    first, second = ({record.step for record in view.records} for view in (a, b))
    return sorted(first - second), sorted(second - first)


def _counted(steps: Sequence[int]) -> str:
    """How many steps, and from which to which."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"{len(steps)} steps ({steps[0]} to {steps[-1]})"


def _changed(a: JudgedRun, b: JudgedRun) -> list[tuple[str, str, str]]:
    """Settings in which two runs differ: name, and both values."""
    from roledrift.report.sweep.summary import settings

    first, second = settings(a.header), settings(b.header)
    names = sorted({*first, *second})
    rows = [(name, first.get(name, ""), second.get(name, "")) for name in names]
    return [row for row in rows if row[1] != row[2]]


def differences(a: JudgedRun, b: JudgedRun) -> tuple[Difference, ...]:
    """Compare the statistics of each role by step, and reward and tokens of texts by prompt."""
    differing: list[Difference] = []
    roles = [role for role in a.roles if role in b.roles]
    for role in (*roles, "*"):
        for name in _QUANTITIES:
            differing += _difference(role, name, a.curve(role, name), b.curve(role, name), "step")
    differing += _difference("*", "reward of the step", a.reward, b.reward, "step")
    differing += _difference("*", "validation accuracy", a.validation, b.validation, "step")
    for role in roles:
        for name in ("tokens", "reward"):
            kept = [
                {
                    (text.step, text.prompt, text.slot, text.turn): float(getattr(text, name))
                    for text in view.samples
                    if text.role == role and text.prompt
                }
                for view in (a, b)
            ]
            title = f"{name}{_OF_TEXTS}"
            differing += _difference(role, title, kept[0], kept[1], "prompt and step")
    return tuple(differing)


def _difference(
    role: str, name: str, a: Mapping[Any, float], b: Mapping[Any, float], paired: str
) -> list[Difference]:
    """One difference, or none where one of the runs lacks the quantity."""
    first = {key: value for key, value in a.items() if math.isfinite(value)}
    second = {key: value for key, value in b.items() if math.isfinite(value)}
    if not first or not second:
        return []
    common = sorted(first.keys() & second.keys())
    if common:
        ours, theirs = [first[key] for key in common], [second[key] for key in common]
        low, high = interval([y - x for x, y in zip(ours, theirs, strict=True)])
    else:
        paired = "no"
        ours, theirs = ([run[key] for key in sorted(run)] for run in (first, second))
        low, high = interval(ours, theirs)
    a_mean, b_mean = sum(ours) / len(ours), sum(theirs) / len(theirs)
    pairs = min(len(ours), len(theirs))
    difference = Difference(role, name, a_mean, b_mean, low, high, pairs, paired)
    if not difference.of_texts:
        ends = max(first), max(second)
        difference = replace(difference, a_last=first[ends[0]], b_last=second[ends[1]],
                        a_last_step=ends[0], b_last_step=ends[1])  # fmt: skip
    return [difference]


def _print(
    names: tuple[str, str],
    views: tuple[JudgedRun, JudgedRun],
    differing: Sequence[Difference],
    changed: Sequence[tuple[str, str, str]],
) -> None:
    from rich.table import Table
    from rich.text import Text

    def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        out = console.console()
        out.print(Text(f"\n{title}", style="bold"))
        gap = 2 if out.width >= _WIDE else 1
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
        for head in heads:
            table.add_column(head, overflow="fold", min_width=12 if head == "quantity" else None)
        for row in rows:
            table.add_row(*(Text(printable(cell, 120)) for cell in row))
        console.print_table(table)

    for letter, name, view in zip("AB", names, views, strict=True):
        line = Text(f"{letter} = {printable(name)}: ", style="bold")
        outcome = view.conclusion.outcome
        line.append(outcome, style=console.COLOURS.get(outcome, ""))
        line.append(f": {printable(view.conclusion.sentence, 1200)}", style="not bold")
        console.console().print(line, soft_wrap=True)
    if not differing:
        console.say("the two runs share no such statistic of a role: there is nothing to compare")
    for title, rows in _tables(differing):
        heads = ("role", "quantity", "A", "B", "B - A", "95 %", "n", "")
        show(title, (*heads, "A at its end", "B at its end")[: len(rows[0])], rows)
    if changed:
        show("Settings that differ", ("setting", "A", "B"), changed)


def _tables(differing: Sequence[Difference]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Differences by how they are paired; ``*`` marks an interval that leaves out 0."""
    titles = {"step": "Paired by step", "prompt and step": "Kept texts, paired by prompt and step"}
    tables = []
    for paired in dict.fromkeys(difference.paired for difference in differing):
        those = [difference for difference in differing if difference.paired == paired]
        rows = [_row(difference) for difference in those]
        if all(difference.of_texts for difference in those):
            rows = [row[:-2] for row in rows]
        tables.append((f"{titles.get(paired, 'Not paired')} (*: the interval leaves out 0)", rows))
    return tables


def _row(of: Difference) -> tuple[str, ...]:
    from roledrift.report.numbers import number

    return (
        "all" if of.role == "*" else of.role,
        of.quantity if of.paired == "no" else of.quantity.removesuffix(_OF_TEXTS),
        number(of.a),
        number(of.b),
        number(of.b - of.a),
        "too few" if math.isnan(of.low) else f"{number(of.low)} to {number(of.high)}",
        str(of.pairs),
        "*" if of.clear else "",
        _end(of.a_last, of.a_last_step),
        _end(of.b_last, of.b_last_step),
    )


def _end(value: float, step: int | None) -> str:
    """A value and the step at which a run ended with it."""
    from roledrift.report.numbers import number

    return "–" if step is None else f"{number(value)} (step {step})"


def interval(values: Sequence[float], other: Sequence[float] | None = None) -> tuple[float, float]:
    """Compute the 95 % bootstrap interval of a mean, or of ``mean(other) - mean(values)``.

    Neighbouring steps resemble each other, so whole blocks are drawn: ``n ** (1/3)`` long, a
    common choice for the moving-block bootstrap (Künsch 1989). The draws are seeded: the same runs
    give the same interval. Of fewer than five values there is none (NaN): a single one would be
    drawn again and again, and every difference would seem certain.
    """
    if min(len(values), len(values if other is None else other)) < _FEWEST:
        return math.nan, math.nan
    draws = np.random.default_rng(0)
    means = _resampled(np.asarray(values, dtype=np.float64), draws)
    if other is not None:
        means = _resampled(np.asarray(other, dtype=np.float64), draws) - means
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def _resampled(x: NDArray[np.float64], draws: np.random.Generator) -> NDArray[np.float64]:
    n = len(x)
    block = max(1, round(n ** (1 / 3)))
    count = -(-n // block)
    starts = draws.integers(0, n - block + 1, size=(RESAMPLES, count))
    where = (starts[:, :, None] + np.arange(block)).reshape(RESAMPLES, -1)[:, :n]
    means: NDArray[np.float64] = x[where].mean(axis=1)
    return means
