from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest

from roledrift.report.figures import heat_svg, panel_svg, strip_svg
from roledrift.report.model import Bar, Heat, Lane, Line, Mark, Panel, Strip

STEPS = tuple(range(0, 100, 2))
CURVE = tuple(0.5 + 0.1 * math.sin(step) for step in STEPS)


def panel(**how: object) -> Panel:
    lines = (
        Line("slot 0", STEPS, CURVE, style="slot", tone=0),
        Line("generator", STEPS, CURVE, tone=0, low=CURVE, high=CURVE),
    )
    marks = (Mark(40, "onset 40"), Mark(42, "alert 42"))
    return Panel("p", lines, (0, 99), baseline=(0, 7), marks=marks, **how)  # type: ignore[arg-type]


STRIP = Strip("s", "", "", (0, 99), (Lane("recorded", (Bar(0, 99),)), Lane("val", ticks=(1, 5))))
HEAT = Heat("h", "", "", ("a · b",), (0, 5, 9), ((0.5, math.nan, -1.0),), (0, 9))


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("log", [True, False])
def test_a_panel_is_small_valid_svg_without_styles_or_fixed_colours(
    columns: int, log: bool
) -> None:
    svg = panel_svg(panel(log=log), "key", columns)
    ElementTree.fromstring(svg)
    assert len(svg) < 20_000
    assert "style=" not in svg
    assert "<style" not in svg
    assert "onset 40" in svg
    assert "alert 42" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg.replace('href="#', ""))
    assert "var(--tone-0)" in svg


@pytest.mark.parametrize("svg", [strip_svg(STRIP), heat_svg(HEAT)])
def test_strips_are_valid_svg(svg: str) -> None:
    ElementTree.fromstring(svg)
    assert "style=" not in svg


def test_the_same_panel_gives_the_same_bytes() -> None:
    assert panel_svg(panel(), "key") == panel_svg(panel(), "key")


def test_ids_of_two_panels_do_not_meet() -> None:
    a, b = (set(re.findall(r' id="([^"]+)"', panel_svg(panel(), key))) for key in ("a", "b"))
    assert a
    assert not a & b


@pytest.mark.parametrize(
    "values",
    [(), (math.nan, math.nan), (0.0, 0.0), (-1.0, 1e300), (1.0,), (math.inf, 1.0)],
)
@pytest.mark.parametrize("log", [True, False])
def test_odd_values_still_give_a_panel(values: tuple[float, ...], log: bool) -> None:
    steps = tuple(range(len(values)))
    lines = (Line("a", steps, values, tone=0), Line("b", steps, values, style="limit"))
    ElementTree.fromstring(panel_svg(Panel("p", lines, (0, 1), log=log), "key"))


def test_names_are_not_read_as_formulas() -> None:
    lines = tuple(Line(name, (0, 1), (0.0, 1.0), tone=0) for name in ("$\\frac{", "数学 <b>"))
    svg = panel_svg(Panel("p", lines, (0, 1)), "key")
    assert "$\\frac{" in svg
    assert "数学 &lt;b&gt;" in svg
