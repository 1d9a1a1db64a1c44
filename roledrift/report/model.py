"""The report as plain frozen values, which every renderer reads and none changes.

A report is a list of runs, a run a list of sections, a section a list of blocks. The first section
is the first screen. A new section is a function that returns :class:`Section`; a new kind of block
is a class here and one macro in each renderer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal, cast, get_args, get_origin, get_type_hints

from roledrift.judgement import Incident
from roledrift.report.cells import Cell, Table
from roledrift.report.draw.plots import Plot
from roledrift.report.statuses import Status
from roledrift.report.texts.text_blocks import Diff, Diffs, Excerpt, Pairing, Pairs, TextBrowser

__all__ = [
    "Advice", "AlertCard", "Block", "Cell", "Diff", "Diffs", "Excerpt", "Figure", "Line",
    "Mark", "Note", "Pairing", "Pairs", "Panel", "Plot", "Prose", "Report", "RunReport",
    "Section", "Status", "Table", "TextBrowser", "map_text", "plain",
]  # fmt: skip

REPORT_SCHEMA = 4
"""Version of the layout of ``report.json``."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    kind: ClassVar[str] = "prose"
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Note:
    """A grey remark: what is missing and what would supply it, or a caveat."""

    kind: ClassVar[str] = "note"
    text: str
    items: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do: first the most effective action, then what may follow it."""

    kind: ClassVar[str] = "advice"
    title: str
    items: tuple[str, ...]


Style = Literal["main", "slot", "other", "limit"]


@dataclass(frozen=True, slots=True)
class Line:
    """One curve over steps.

    Attributes:
        label: Written at its right end if a panel has several lines.
        steps: Thinned to at most 600 points.
        values: Aligned with ``steps``; NaN is a gap.
        role: Gives the colour; empty for neutral.
        low: Lower edge of a band, aligned with ``steps``; empty for none. Likewise ``high``.
        style: ``main``, ``slot`` (thin), ``other`` (dashed) or ``limit`` (a threshold).
        tone: Index of a colour for lines that belong to no role, -1 for neutral.
    """

    label: str
    steps: tuple[int, ...]
    values: tuple[float, ...]
    role: str = ""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    style: Style = "main"
    tone: int = -1


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at a step.

    Attributes:
        mild: Drawn grey and dashed: a place to go back to, not something that went wrong.
    """

    step: int
    label: str
    mild: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart, usually of one quantity for all roles.

    Attributes:
        span: First and last step of the run: all panels of a run share it.
        limits: Lower and upper end of the value axis, shared between neighbours; None for free.
        baseline: First and last step of the baseline window.
        absent: Why there is nothing to draw; empty if there is.
        note: What healthy looks like.
        href: Where its title leads.
        state: State of the run that it is about, shown beside its title.
        margin: Letters that names at the right end have room for, at least: panels that stand one
            below the other share an axis of steps.
    """

    title: str
    lines: tuple[Line, ...] = ()
    span: tuple[int, int] = (0, 1)
    limits: tuple[float, float] | None = None
    log: bool = False
    baseline: tuple[int, int] | None = None
    marks: tuple[Mark, ...] = ()
    absent: str = ""
    note: str = ""
    href: str = ""
    state: Status = ""
    margin: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """Small multiples, or charts one below the other on a common axis of steps.

    Attributes:
        stacked: One below the other, and wide.
        table: Its data; None where ``report.json`` and the run directory are enough.
    """

    kind: ClassVar[str] = "figure"
    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    table: Table | None = None
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class AlertCard:
    """One alert with its evidence."""

    kind: ClassVar[str] = "card"
    key: str
    title: str
    state: Status
    facts: str
    blocks: tuple[Block, ...]


Block = Prose | Note | Advice | Table | Figure | Plot | Pairs | Diffs | TextBrowser | AlertCard


@dataclass(frozen=True, slots=True)
class Section:
    """One section of a run.

    Attributes:
        key: Stable name, also the anchor.
        summary: What it holds, shown beside its title while it is collapsed.
        opened: Shown open.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    summary: str = ""
    opened: bool = False


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run.

    Attributes:
        key: Anchor, unique in the report.
        state: What the run is, by the rule of every output.
        headline: The sentence of its first incident, or why there is none.
        lead: The beginning of ``headline``: the cause alone.
        roles: Role names in registry order; gives the colours.
        facts: Short facts for the top line.
        notes: What the run says of itself, such as its learning rate.
        notices: What to know before the verdict is believed, e.g. that the run was not closed.
        page: Page of its own, relative to the index; empty if it is on this page.
        data: File with its sections, relative to this ``report.json``; empty if they are here.
        incident: The incident that the headline tells; None if nothing was found.
    """

    key: str
    name: str
    state: Status
    headline: str
    lead: str
    roles: tuple[str, ...]
    facts: tuple[str, ...]
    sections: tuple[Section, ...]
    page: str = ""
    data: str = ""
    notes: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    incident: Incident | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a renderer needs.

    Attributes:
        title: Name of the run, or how many there are.
        command: The command that makes the page again.
        overview: Blocks above the runs; empty for a single run.
        home: Link back to the index of the folder that the run is part of; else empty.
    """

    title: str
    version: str
    command: str
    overview: tuple[Block, ...]
    runs: tuple[RunReport, ...]
    home: str = ""


def plain(value: Any) -> dict[str, Any]:
    """Convert one part of a report to JSON-ready values, one level deep.

    Non-finite numbers become strings, as in run directories.

    Raises:
        TypeError: If ``value`` is no part of a report.
    """
    kind, names, numbers = _shape(cast(Any, type(value)))
    if not names:
        raise TypeError(f"no part of a report: {type(value).__name__}")
    body: dict[str, Any] = {"kind": kind} if kind else {}
    for name in names:
        body[name] = getattr(value, name)
    for name in numbers:
        body[name] = _finite(body[name])
    return body


def _finite(value: Any) -> Any:
    if type(value) is float and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if type(value) is tuple and value:
        first = type(value[0])
        if first is float and _all_finite(value):
            return value
        if first is float or first is tuple:
            return [_finite(item) for item in value]
    return value


def _all_finite(values: tuple[Any, ...]) -> bool:
    """True only if it is so: a sum of numbers is finite only if each of them is."""
    try:
        return math.isfinite(sum(values))
    except TypeError:
        return False


ANCHORS = frozenset(
    {"key", "href", "page", "data", "run", "home", "kind", "state", "severity", "id", "alert"}
)
"""Fields that hold links and words of our own: changing them would break the page."""


def map_text(value: Any, change: Callable[[str], str], keep: frozenset[str] = frozenset()) -> Any:
    """Change every string in ``value``: the one place that cleans what a run brought in.

    What holds nothing that changes is not copied.

    Args:
        value: A report or a part of one.
        change: What is done to every string.
        keep: Names of fields that stay as they are.
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, tuple):
        items = [map_text(item, change, keep) for item in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else tuple(items)
    changed: dict[str, Any] = {}
    for name in _wordy(cast(Any, type(value))):
        if name in keep:
            continue
        old = getattr(value, name)
        if not old:
            continue
        new = change(old) if type(old) is str else map_text(old, change, keep)
        if new is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value


@cache
def _shape(cls: type[Any]) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Kind and fields of a dataclass, and those fields that may hold numbers."""
    if not is_dataclass(cls):
        return None, (), ()
    hints = get_type_hints(cls)
    names = tuple(field.name for field in fields(cls))
    kind = "report" if cls is Report else getattr(cls, "kind", None)
    return kind, names, tuple(name for name in names if _holds_numbers(hints[name]))


def _holds_numbers(hint: Any) -> bool:
    return hint is float or hint is Any or any(map(_holds_numbers, get_args(hint)))


@cache
def _wordy(cls: type[Any]) -> tuple[str, ...]:
    """Names of the fields of a dataclass that may hold words; none for any other class."""
    if not is_dataclass(cls):
        return ()
    hints = get_type_hints(cls)
    return tuple(field.name for field in fields(cls) if _holds_words(hints[field.name]))


def _holds_words(hint: Any) -> bool:
    parts = [part for part in get_args(hint) if part is not Ellipsis]
    if get_origin(hint) is Literal or hint in (int, float, bool, type(None)):
        return False
    return any(_holds_words(part) for part in parts) if parts else True
