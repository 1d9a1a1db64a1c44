"""Charts whose horizontal axis is not the step: points on lines, and points against points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from roledrift.report.cells import Table

SHAPES = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True, slots=True)
class Dot:
    """One point.

    Attributes:
        y: For points against points; on a line, the line gives the height.
        name: What it is, shown on hover.
        tone: Index of its colour; likewise ``shape``.
        size: Radius.
        href: Link to its run.
    """

    x: float
    name: str
    y: float = math.nan
    tone: int = 0
    shape: int = 0
    size: float = 3.0
    href: str = ""


@dataclass(frozen=True, slots=True)
class Plot:
    """Points on labelled lines (``rows``), or against each other (no rows).

    Attributes:
        rows: Label and points of each line; empty for points against points.
        dots: The points against points.
        axes: What stands on the horizontal and the vertical axis.
        keys: What colours and shapes mean: label, tone, shape.
        zero: Draw the vertical line at 0; ``diagonal``: the line of equal values.
    """

    kind: ClassVar[str] = "plot"
    key: str
    title: str
    caption: str
    axes: tuple[str, str]
    rows: tuple[tuple[str, tuple[Dot, ...]], ...] = ()
    dots: tuple[Dot, ...] = ()
    keys: tuple[tuple[str, int, int], ...] = ()
    log: bool = False
    zero: bool = False
    diagonal: bool = False
    table: Table | None = None
