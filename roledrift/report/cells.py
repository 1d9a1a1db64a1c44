"""Tables and their cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from roledrift.report.statuses import Status


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table.

    Attributes:
        text: What is shown.
        value: The number behind the text, at full precision.
        state: Makes the cell a state chip.
        note: Second, smaller line.
        href: Anchor in the page, ``#...``.
    """

    text: str
    value: float | None = None
    state: Status = ""
    note: str = ""
    href: str = ""


UNKNOWN = Cell("–")
"""Nothing is known."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        collapsed: Shown closed, its title as the handle.
        key: Names its CSV and LaTeX files, and is its anchor; empty for neither.
        sortable: Its rows can be put in another order by a click on a heading.
    """

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    caption: str = ""
    collapsed: bool = False
    key: str = ""
    sortable: bool = False
