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

    from roledrift.report.view import View

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
    from roledrift.report.view import load
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
    found = differences(a, b)
    changed = _changed(a, b)
    left_out = _unpaired(a, b)
    for letter, other, steps in zip("AB", "BA", left_out, strict=True):
        if steps and any(one.paired == "step" for one in found):
            console.say(f"{_counted(steps)} of {letter} left out: {other} has no such steps")
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.compare/2",
                "a": first,
                "b": second,
                "settings": [dict(zip(("name", "a", "b"), row, strict=True)) for row in changed],
                "differences": [{**asdict(one), "clear": one.clear} for one in found],
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
        _print((first, second), (a, b), found, changed)
        for file in pages:
            console.console().print(str(file), soft_wrap=True)
    return console.CLEAN if found else console.INCONCLUSIVE


def _unpaired(a: View, b: View) -> tuple[list[int], list[int]]:
    """Steps that only the first run has, and those that only the second has."""
    one, two = ({record.step for record in view.records} for view in (a, b))
    return sorted(one - two), sorted(two - one)


def _counted(steps: Sequence[int]) -> str:
    """How many steps, and from which to which."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"{len(steps)} steps ({steps[0]} to {steps[-1]})"


def _changed(a: View, b: View) -> list[tuple[str, str, str]]:
    """Settings in which two runs differ: name, and both values."""
    from roledrift.report.sweep.summary import settings

    first, second = settings(a.header), settings(b.header)
    names = sorted({*first, *second})
    rows = [(name, first.get(name, ""), second.get(name, "")) for name in names]
    return [row for row in rows if row[1] != row[2]]


def differences(a: View, b: View) -> tuple[Difference, ...]:
    """Compare the statistics of each role by step, and reward and tokens of texts by prompt."""
    found: list[Difference] = []
    for role in (*(one for one in a.roles if one in b.roles), "*"):
        for name in _QUANTITIES:
            found += _difference(role, name, a.curve(role, name), b.curve(role, name), "step")
    for name, one, two in (
        ("reward of the step", a.reward, b.reward),
        ("validation accuracy", a.validation, b.validation),
    ):
        found += _difference("*", name, one, two, "step")
    for role in (one for one in a.roles if one in b.roles):
        for name in ("tokens", "reward"):
            kept = [
                {
                    (one.step, one.prompt, one.slot, one.turn): float(getattr(one, name))
                    for one in view.samples
                    if one.role == role and one.prompt
                }
                for view in (a, b)
            ]
            title = f"{name}{_OF_TEXTS}"
            found += _difference(role, title, kept[0], kept[1], "prompt and step")
    return tuple(found)


def _difference(
    role: str, name: str, a: Mapping[Any, float], b: Mapping[Any, float], paired: str
) -> list[Difference]:
    """One difference, or none where one of the runs lacks the quantity."""
    one = {key: value for key, value in a.items() if math.isfinite(value)}
    two = {key: value for key, value in b.items() if math.isfinite(value)}
    if not one or not two:
        return []
    common = sorted(one.keys() & two.keys())
    if common:
        left, right = [one[key] for key in common], [two[key] for key in common]
        low, high = interval([y - x for x, y in zip(left, right, strict=True)])
    else:
        left, right, paired = [one[k] for k in sorted(one)], [two[k] for k in sorted(two)], "no"
        low, high = interval(left, right)
    a_mean, b_mean = sum(left) / len(left), sum(right) / len(right)
    pairs = min(len(left), len(right))
    found = Difference(role, name, a_mean, b_mean, low, high, pairs, paired)
    if not found.of_texts:
        ends = max(one), max(two)
        found = replace(found, a_last=one[ends[0]], b_last=two[ends[1]],
                        a_last_step=ends[0], b_last_step=ends[1])  # fmt: skip
    return [found]


def _print(
    names: tuple[str, str],
    views: tuple[View, View],
    found: Sequence[Difference],
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
    if not found:
        console.say("the two runs share no such statistic of a role: there is nothing to compare")
    for title, rows in _tables(found):
        heads = ("role", "quantity", "A", "B", "B - A", "95 %", "n", "")
        show(title, (*heads, "A at its end", "B at its end")[: len(rows[0])], rows)
    if changed:
        show("Settings that differ", ("setting", "A", "B"), changed)


def _tables(found: Sequence[Difference]) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Differences by how they are paired; ``*`` marks an interval that leaves out 0."""
    from roledrift.report.numbers import number

    titles = {"step": "Paired by step", "prompt and step": "Kept texts, paired by prompt and step"}
    tables = []
    for paired in dict.fromkeys(one.paired for one in found):
        those = [one for one in found if one.paired == paired]
        ends = not all(one.of_texts for one in those)
        rows: list[tuple[str, ...]] = [
            (
                "all" if one.role == "*" else one.role,
                one.quantity.removesuffix(_OF_TEXTS) if paired in titles else one.quantity,
                number(one.a),
                number(one.b),
                number(one.b - one.a),
                f"{number(one.low)} to {number(one.high)}" if one.low == one.low else "too few",
                str(one.pairs),
                "*" if one.clear else "",
                *(
                    (_end(one.a_last, one.a_last_step), _end(one.b_last, one.b_last_step))[
                        : 2 * ends
                    ]
                ),
            )
            for one in those
        ]
        tables.append((f"{titles.get(paired, 'Not paired')} (*: the interval leaves out 0)", rows))
    return tables


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
