"""``roledrift compare``: two runs, paired where that is possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from roledrift.cli import console
from roledrift.errors import RoleDriftError
from roledrift.notify.console import printable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from roledrift.report.view import View

RESAMPLES = 2_000
_QUANTITIES = (("length", "p50"), ("reward", "mean"), ("entropy", "mean"), ("ppl", "mean"),
               ("update.k3", "mean"), ("rollout.chi2", "mean"), ("truncated", "mean"))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """One quantity in both runs.

    Attributes:
        a: Mean in the first run over what is paired; likewise ``b``.
        low: Lower end of the 95 % bootstrap interval of ``b - a``; likewise ``high``.
        pairs: Number of pairs, or of values of the shorter run where nothing pairs.
        paired: ``step``, ``prompt and step``, or ``no``.
    """

    role: str
    quantity: str
    a: float
    b: float
    low: float
    high: float
    pairs: int
    paired: str

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return self.low > 0 or self.high < 0


def compare(first: str, second: str, *, out: Path | None = None, as_json: bool = False) -> int:
    """Compare two runs and print the differences.

    Args:
        first: A run.
        second: Another.
        out: Also write a report on both to this directory.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0, 2 if a run cannot be read, 3 if the two share nothing to compare.
    """
    from roledrift.report.build import build_report, build_run
    from roledrift.report.summary import summarise
    from roledrift.report.view import load
    from roledrift.report.write import write_report

    try:
        a, b = (load(Path(path), key) for path, key in ((first, "run1"), (second, "run2")))
        if out is not None:
            write_report(build_report([first, second]), out)
    except (RoleDriftError, OSError) as error:
        gone = next((path for path in (first, second) if not Path(path).exists()), None)
        return console.fail(console.failure_of(error, gone), as_json=as_json)
    found = differences(a, b)
    settings = [summarise(view, build_run(view, "")).settings for view in (a, b)]
    names = sorted({*settings[0], *settings[1]})
    changed = [
        (name, settings[0].get(name, ""), settings[1].get(name, ""))
        for name in names
        if settings[0].get(name, "") != settings[1].get(name, "")
    ]
    onsets = [
        (view.name, one.alert.role, one.alert.finding, one.alert.level, one.alert.onset)
        for view in (a, b)
        for one in view.findings
    ]
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.compare/1",
                "a": first,
                "b": second,
                "settings": [dict(zip(("name", "a", "b"), row, strict=True)) for row in changed],
                "differences": [{**asdict(one), "clear": one.clear} for one in found],
                "alerts": [
                    dict(zip(("run", "role", "finding", "level", "onset"), row, strict=True))
                    for row in onsets
                ],
            }
        )
    else:
        _print((a.name, b.name), found, changed, onsets)
    return console.CLEAN if found else console.INCONCLUSIVE


def differences(a: View, b: View) -> tuple[Difference, ...]:
    """Statistics per role paired by step, and reward and tokens of kept texts paired by prompt."""
    found: list[Difference] = []
    for role in (*(one for one in a.roles if one in b.roles), "*"):
        for name, attribute in _QUANTITIES:
            one, two = a.curve(role, name, attribute), b.curve(role, name, attribute)
            found += _difference(role, name, one, two, "step")
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
            title = f"{name} of kept texts"
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
    return [Difference(role, name, a_mean, b_mean, low, high, pairs, paired)]


def _print(
    names: tuple[str, str],
    found: Sequence[Difference],
    changed: Sequence[tuple[str, str, str]],
    onsets: Sequence[tuple[str, str, str, str, int]],
) -> None:
    from rich.table import Table
    from rich.text import Text

    from roledrift.report.numbers import number

    def show(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        console.console().print(Text(title, style="bold"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        for head in heads:
            table.add_column(head)
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console.print_table(table)

    a, b = (printable(name, 40) for name in names)
    rows = [
        (
            "all" if one.role == "*" else one.role,
            one.quantity,
            number(one.a),
            number(one.b),
            f"{number(one.b - one.a)} [{number(one.low)}, {number(one.high)}]",
            f"{one.pairs} by {one.paired}" if one.paired != "no" else f"{one.pairs}, not paired",
            "differs" if one.clear else "",
        )
        for one in found
    ]
    if rows:
        heads = ("role", "quantity", "A", "B", "B - A [95 %]", "pairs", "")
        show(f"A = {a}, B = {b}", heads, rows)
    else:
        console.say("the two runs share no statistic of a role, so there is nothing to compare")
    if changed:
        show("Settings that differ", ("setting", "A", "B"), changed)
    if onsets:
        text = [(*row[:4], str(row[4])) for row in onsets]
        show("Alerts", ("run", "role", "finding", "level", "onset"), text)


def interval(values: Sequence[float], other: Sequence[float] | None = None) -> tuple[float, float]:
    """95 % bootstrap interval of a mean, or of ``mean(other) - mean(values)``.

    Neighbouring steps resemble each other, so whole blocks are drawn: ``n ** (1/3)`` long, a
    common choice for the moving-block bootstrap (Künsch 1989). The draws are seeded: the same runs
    give the same interval.
    """
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
