"""The live table of ``roledrift watch``: a headline per run, a line per role."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.cli.watched import Watched
from roledrift.notify.console import printable
from roledrift.records import StepRecord
from roledrift.report.statuses import STATUSES, Status, status_of, still_open, urgency
from roledrift.sums import EVERYONE

if TYPE_CHECKING:
    from rich.text import Text

_BARS, _ASCII = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_WIDTH, _NARROW = 24, 6
_NUMBERS = 15  # a blank, a number of three digits, such as 1.23e-05, and its ratio, such as x0.45
_RATIO = 7  # of these the ratio, which is shown alone where there is little room
_PER_BAR = 4
_VERDICT = 15
_LEAST_DOUBLINGS = 2.0
_ORDER = ("", "no verdict", *(status for status in STATUSES if status not in ("", "no verdict")))
"""Here a role that some detector could judge is not one without a verdict."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A statistic of the table."""

    title: str
    statistic: str
    attribute: str
    ratio: bool

    def of(self, record: StepRecord, role: str) -> float | None:
        """Its value for a role in one step."""
        value: float | None = getattr(record.stat(role, self.statistic), self.attribute, None)
        return value


SHOWN = (
    Shown("length", "length", "mean", True),
    Shown("reward", "reward", "mean", False),
    Shown("k3", "update.k3", "mean", True),
)


def board(watched: Sequence[Watched], *, plain: bool = False, width: int = 100) -> Text:
    """Draw a headline per run and a line per role, with sparklines as wide as there is room."""
    from rich.text import Text

    roles = [role for run in watched for role, _ in _worst(run)]
    role_width = max((len(console.role(role)) for role in roles), default=4) + 2
    share = (width - 2 - role_width - _VERDICT) // len(SHOWN) - 2
    brief = share - _NUMBERS < _NARROW <= share - _RATIO
    numbers = _RATIO if brief else _NUMBERS
    bars = 0 if share - numbers < _NARROW else min(share - numbers, _WIDTH)
    column = bars + numbers + 2
    heads = "".join(f"{shown.title:<{column}}" for shown in SHOWN)
    blank = " " * (2 + role_width + _VERDICT)
    text = Text(f"{blank}{heads}".rstrip(), style="bold", no_wrap=True, overflow="crop")
    for run in sorted(watched, key=_urgency):
        _headline(text, run, plain=plain, width=width, bars=bars)
        for role, status in _worst(run):
            cells = (
                _cell(run, role, shown, plain=plain, bars=bars, brief=brief) for shown in SHOWN
            )
            curves = "".join(f"{cell:<{column}}" for cell in cells).rstrip()
            text.append(f"\n  {printable(console.role(role)):<{role_width}}", style="not bold")
            colour = console.COLOURS.get(status, "")
            text.append(f"{status:<{_VERDICT}}", style=f"not bold {colour}".replace("bold b", "b"))
            text.append(curves, style="not bold")
    return text


def _headline(text: Text, run: Watched, *, plain: bool, width: int, bars: int) -> None:
    """Name, progress and outcome of a run; its sentence; its accuracy."""
    conclusion = run.conclusion
    name = printable(run.name, 60)
    text.append(f"\n{name}  {_progress(run)}  {_state(run)}  ", style="bold")
    text.append(conclusion.outcome, style=console.COLOURS.get(conclusion.outcome, ""))
    if run.last is None:
        return
    for part in textwrap.wrap(printable(conclusion.sentence, 1200), max(width - 2, 20)):
        text.append(f"\n  {part}", style="not bold")
    for title, total in (("validation accuracy", "val_accuracy"), ("accuracy", "accuracy")):
        values = run.series(partial(_total, name=total))
        if values:
            drawn = f"{scaled(values, None, plain=plain, width=bars)} " if bars else ""
            text.append(
                f"\n  {title} {drawn}{values[-1]:.3g}, best {max(values):.3g}", style="not bold"
            )
            return


def _total(record: StepRecord, *, name: str) -> float | None:
    return record.totals.get(name)


def _progress(run: Watched) -> str:
    if run.last is None:
        return "no step yet"
    return f"step {run.last} of {run.planned}" if run.planned else f"step {run.last}"


def _state(run: Watched) -> str:
    """Its state, and how long ago the last step of a run that goes on was written."""
    if run.state == "finished" or run.last is None:
        return run.state
    return f"{run.state}, last step {ago(run.age)} ago"


def ago(seconds: float) -> str:
    """Format a span of time in its largest unit, such as ``40 s``, ``3 min`` or ``2 h``."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0.0):.0f} s"


def _urgency(run: Watched) -> tuple[int, bool, float]:
    conclusion = run.conclusion
    return urgency(conclusion.outcome, conclusion.incident)


def _worst(run: Watched) -> list[tuple[str, Status]]:
    """Roles and the worst that any detector says of them; all roles together come last."""
    states: dict[str, Status] = dict.fromkeys(run.roles, "")
    alerts = still_open(run.alerts)
    for verdict in run.suite.verdicts:
        worst, status = states.get(verdict.role, ""), status_of(verdict, alerts)
        states[verdict.role] = max(worst, status, key=_ORDER.index)
    return sorted(states.items(), key=lambda item: item[0] == EVERYONE)


def _cell(run: Watched, role: str, shown: Shown, *, plain: bool, bars: int, brief: bool) -> str:
    """The curve of a statistic, its value, and its ratio to or change from the baseline.

    Where it is to be ``brief``, the value is left out if there is a baseline.
    """
    values = run.series(lambda record: shown.of(record, role))
    if not values:
        return ""
    baseline = run.baseline(values)
    reference = baseline if shown.ratio else None
    curve = f"{scaled(values, reference, plain=plain, width=bars):<{bars}} " if bars else ""
    if baseline is None:
        change = ""
    elif shown.ratio:
        change = f" {times(values[-1] / baseline)}" if baseline > 0 else ""
    else:
        change = f" {values[-1] - baseline:+.2g}"
    value = "" if brief and change else f"{values[-1]:.3g}"
    return f"{curve}{value}{change}".rstrip() if value else f"{curve}{change.lstrip()}"


def times(ratio: float) -> str:
    """Format a ratio in a few characters, such as ``x0.45``, ``x4.1`` or ``x260``."""
    if 0.0 < ratio < 0.01:
        return "x<0.01"
    return f"x{ratio:.0f}" if 10 <= ratio < 1e5 else f"x{ratio:.2g}"


def scaled(
    values: Sequence[float], baseline: float | None, *, plain: bool = False, width: int = _WIDTH
) -> str:
    """Draw the last values as small bars, four to a bar, on a scale on which noise looks small.

    With a baseline, the middle is the baseline and the ends are a quarter and four times of it, or
    as far as the values go. Without one, shares between 0 and 1 are drawn from 0 to 1, and anything
    else around its first value, from minus to plus its size, or as far as the values go.
    """
    shown = _means(values, width)
    if not shown:
        return ""
    positions, middle, reach = _positions(shown, baseline)
    marks = _ASCII if plain else _BARS
    centre, top = (len(marks) - 1) // 2, len(marks) - 1
    return "".join(
        marks[round(centre + x * (centre if x < 0 else top - centre))]
        for x in ((position - middle) / reach for position in positions)
    )


def _means(values: Sequence[float], width: int) -> list[float]:
    """The last values as at most ``width`` means, each of one value or of up to four."""
    if not width:
        return []
    size = min(_PER_BAR, math.ceil(len(values) / width)) or 1
    kept = values[-size * width :]
    ends = range(len(kept), 0, -size)
    return [fmean(kept[max(0, end - size) : end]) for end in ends][::-1]


def _positions(values: Sequence[float], baseline: float | None) -> tuple[list[float], float, float]:
    """Where values stand on the scale, its middle, and how far it reaches to either side."""
    if baseline is not None and baseline > 0:
        doublings = [math.log2(max(x, baseline * 1e-6) / baseline) for x in values]
        return doublings, 0.0, max(_LEAST_DOUBLINGS, *map(abs, doublings))
    if all(0.0 <= x <= 1.0 for x in values):
        return list(values), 0.5, 0.5
    first = values[0]
    return list(values), first, max(abs(first), *(abs(x - first) for x in values)) or 1.0
