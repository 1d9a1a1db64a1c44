from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest

from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.draw.svg import plot_svg

DOTS = (Dot(0.5, "<b>", 0.6, href="#run1"), Dot(math.nan, "gap", 1.0), Dot(0.7, "x", 0.4, 1, 2))


@pytest.mark.parametrize("log", [True, False])
@pytest.mark.parametrize("rows", [True, False])
def test_plots_are_valid_svg_with_links_and_names(rows: bool, log: bool) -> None:
    placed = {"rows": (("cell", DOTS),)} if rows else {"dots": DOTS}
    plot = Plot("k", "t", "c", ("x", "y"), keys=(("IP", 1, 0),), log=log, zero=not log,
                diagonal=True, **placed)  # type: ignore[arg-type] # fmt: skip
    svg = plot_svg(plot)
    ElementTree.fromstring(svg)
    assert 'href="#run1"' in svg
    assert "&lt;b&gt;" in svg
    assert "style=" not in svg
    assert ">gap<" not in svg


def test_a_plot_without_points_is_still_a_plot() -> None:
    ElementTree.fromstring(plot_svg(Plot("k", "t", "c", ("x", "y"))))
