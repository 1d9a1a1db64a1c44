"""Format numbers: three significant digits, ratios as ``x7.4``, steps as whole numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roledrift.report.cells import Cell

DASH = "–"


def number(value: float | None) -> str:
    """Format ``value`` with three significant digits; None is a dash."""
    if value is None:
        return DASH
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    if size >= 999.5:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(size)))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def ratio(value: float | None) -> str:
    """Format a ratio as ``x7.4``."""
    if value is None or not math.isfinite(value):
        return DASH
    if value < 0.01:
        return f"x{number(value)}"
    digits = 0 if value >= 99.95 else (1 if value >= 1.95 else 2)
    return f"x{value:.{digits}f}"


def percent(share: float | None) -> str:
    """Format a share in [0, 1] as a percentage with at most three significant digits."""
    return DASH if share is None else f"{number(share * 100)} %"


def cell(value: float | None) -> Cell:
    """Make a cell with a number."""
    return Cell(number(value), value)


def count(value: int) -> Cell:
    """Make a cell with a step or a count."""
    return Cell(str(value), float(value))


def stepped(value: float, step: int) -> Cell:
    """Make a cell with a number and the step at which it was reached."""
    return Cell(number(value), value, note=f"step {step}")


def average(values: Sequence[float]) -> float | None:
    """Mean of the finite values; None without one."""
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) / len(finite) if finite else None
