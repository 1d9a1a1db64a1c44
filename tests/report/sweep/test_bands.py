import math

from roledrift.report.sweep.bands import banded


def test_a_band_spans_the_seeds_and_needs_most_of_them() -> None:
    line = banded("IP", [{0: 1.0, 1: 2.0, 2: 9.0}, {0: 3.0, 1: math.nan}, {0: 2.0}], 1)
    assert line is not None
    assert line.label == "IP, n=3"
    assert (line.steps, line.values, line.low, line.high) == ((0,), (2.0,), (1.0,), (3.0,))
    assert banded("IP", [{}, {}], 1) is None
