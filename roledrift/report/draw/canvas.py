"""A drawing area with axes, on which a page and a picture draw alike.

What is drawn arrives in points (1/72 inch) from the top left corner, as SVG counts them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from roledrift.report.draw.palette import Dash
from roledrift.spans import Floats

_SPILL = 2.0

Align = Literal["left", "center", "right"]
Ring = Any
"""Corners of a closed polygon, ``(n, 2)``."""


class Canvas(ABC):
    """Draws one chart; all lengths are in points (1/72 inch).

    Places are given in one of these frames: ``data``; ``over`` (data across, 0 to 1 upwards);
    ``beside`` (0 to 1 across, data upwards); ``inside`` (0 to 1 both ways).

    Attributes:
        size: Width and height.
        box: Left, top, right, bottom of the plot, from the top left corner of the canvas.
        inside: The same with room for lines along an edge: what is in the frame ``data`` is clipped
            to it.
    """

    def __init__(self, size: tuple[float, float], at: tuple[float, float] = (0.0, 0.0)) -> None:
        """Make an empty canvas.

        Args:
            size: Width and height.
            at: Its top left corner on what it draws on, which may hold other sheets.
        """
        self.size = size
        self._at = at
        self.set_axes((0.0, 0.0, *size), (0.0, 1.0), (0.0, 1.0))

    def set_axes(
        self,
        box: tuple[float, float, float, float],
        across: tuple[float, float],
        up: tuple[float, float],
    ) -> None:
        """Set where the plot lies and which values its edges have."""
        self.box = box
        (x, y), (left, top, right, bottom) = self._at, box
        start, width, floor, rise = x + left, right - left, y + bottom, top - bottom
        self._across = {True: _axis(start, width, *across), False: (start, width)}
        self._up = {True: _axis(floor, rise, *up), False: (floor, rise)}
        self.inside = (
            start - _SPILL, y + top - _SPILL, start + width + _SPILL, floor + _SPILL
        )  # fmt: skip

    def line(
        self,
        x: Any,
        y: Any,
        *,
        ink: str,
        width: float,
        dash: Dash = "-",
        alpha: float | None = None,
        frame: str = "data",
        dots: float = 0.0,
    ) -> None:
        """Draw a polyline, interrupted by NaN; ``dots`` is the diameter of dots at its points."""
        points = self._places(np.column_stack((x, y)), frame)
        self._line(points, ink, width, dash, alpha, clipped=frame == "data")
        if dots:
            self._dots(points[~np.isnan(points).any(axis=1)], ink, dots / 2, alpha)

    def area(
        self, rings: Sequence[Ring], *, ink: str, alpha: float | None = None, frame: str = "data"
    ) -> None:
        """Fill polygons."""
        places = [self._places(ring, frame) for ring in rings]
        self._area(places, ink, alpha, clipped=frame == "data")

    def marker(
        self,
        shape: Ring | float,
        place: tuple[float, float],
        *,
        inks: tuple[str, str],
        frame: str = "data",
        link: str = "",
    ) -> None:
        """Draw a small marker: a polygon around ``place``, or a circle of a given radius.

        Args:
            shape: In points.
            place: Its middle.
            inks: Inside and edge.
            frame: Of the place.
            link: What it stands for.
        """
        middle = self._places([place], frame)[0]
        ring = None if isinstance(shape, float) else np.asarray(shape) * (1, -1) + middle
        self._marker(middle if ring is None else ring, shape, inks, link)

    def text(
        self,
        place: tuple[float, float],
        words: str,
        *,
        ink: str,
        frame: str,
        offset: tuple[float, float] = (0.0, 0.0),
        align: Align = "center",
        size: float = 7.5,
    ) -> None:
        """Write ``words`` with their baseline at ``place``, moved ``offset`` right and upwards."""
        x, y = self._places([place], frame)[0].tolist()
        words = words.replace("\n", " ")
        if words:
            self._text((x + offset[0], y - offset[1]), words, ink, align, size)

    def _places(self, points: Any, frame: str) -> Floats:
        """Points in a frame, ``(n, 2)``, as places on what is drawn on."""
        x, width = self._across[frame in ("data", "over")]
        y, height = self._up[frame in ("data", "beside")]
        places: Floats = np.asarray(points, dtype=float) * (width, height) + (x, y)
        return places

    @abstractmethod
    def _line(
        self, points: Floats, ink: str, width: float, dash: Dash, alpha: float | None,
        *, clipped: bool,
    ) -> None:  # fmt: skip
        """Draw a polyline."""

    @abstractmethod
    def _dots(self, points: Floats, ink: str, radius: float, alpha: float | None) -> None:
        """Draw a dot at each point."""

    @abstractmethod
    def _area(
        self, rings: Sequence[Floats], ink: str, alpha: float | None, *, clipped: bool
    ) -> None:
        """Fill polygons."""

    @abstractmethod
    def _marker(self, ring: Floats, shape: Ring | float, inks: tuple[str, str], link: str) -> None:
        """Draw a polygon, or a circle of the radius ``shape`` around the place ``ring``."""

    @abstractmethod
    def _text(
        self, place: tuple[float, float], words: str, ink: str, align: Align, size: float
    ) -> None:
        """Write words at a place."""


def _axis(origin: float, length: float, low: float, high: float) -> tuple[float, float]:
    slope = length / (high - low)
    return origin - slope * low, slope


def rectangle(left: float, lower: float, right: float, upper: float) -> Ring:
    """Return the corners of a rectangle."""
    return ((left, lower), (right, lower), (right, upper), (left, upper))
