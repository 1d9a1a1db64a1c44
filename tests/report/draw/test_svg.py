from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from roledrift.report.draw.svg import panel_svg, stacked_svg
from roledrift.report.model import Line, Mark, Panel

STEPS = tuple(range(0, 100, 2))
CURVE = tuple(0.5 + 0.1 * math.sin(step) for step in STEPS)


def panel(**how: object) -> Panel:
    lines = (
        Line("slot 0", STEPS, CURVE, style="slot", tone=0),
        Line("generator", STEPS, CURVE, tone=0, low=CURVE, high=CURVE),
    )
    marks = (Mark(40, "onset 40"), Mark(42, "alert 42"))
    return Panel("p", lines, (0, 99), baseline=(0, 7), marks=marks, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("narrow", [None, True, False])
@pytest.mark.parametrize("log", [True, False])
def test_a_panel_is_small_valid_svg_without_styles_or_fixed_colours(
    narrow: bool | None, log: bool
) -> None:
    shown = panel(log=log)
    svg = panel_svg(shown, "key") if narrow is None else stacked_svg(shown, "key", 0, narrow=narrow)
    ElementTree.fromstring(svg)
    assert len(svg) < 20_000
    assert "style=" not in svg
    assert "<style" not in svg
    assert "onset 40" in svg
    assert "alert 42" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", svg.replace('href="#', ""))
    assert "var(--tone-0)" in svg


def test_what_was_drawn_before_leaves_no_trace() -> None:
    first = panel_svg(Panel("p", panel().lines[:1], (0, 99)), "key")
    panel_svg(panel(log=True), "other")
    assert panel_svg(Panel("p", panel().lines[:1], (0, 99)), "key") == first


ELSEWHERE = """
from roledrift.report.draw.svg import panel_svg
from roledrift.report.model import Line, Mark, Panel
lines = tuple(Line(f"role {i}", tuple(range(9)), (0.1 * i,) * 9, tone=i) for i in range(3))
print(panel_svg(Panel("p", lines, (0, 9), baseline=(0, 2), marks=(Mark(4, "onset 4"),)), "key"))
"""


def test_processes_agree_whatever_their_hash_seed() -> None:
    drawn = [
        subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert drawn[0].startswith(b"<svg")
    assert drawn[0] == drawn[1]


def test_roles_differ_in_their_dashes_and_not_in_colour_alone() -> None:
    lines = tuple(Line(f"r{i}", (0, 1), (0.0, 1.0 + i), tone=i) for i in range(3))
    svg = panel_svg(Panel("p", lines, (0, 1)), "key")
    assert len(set(re.findall('stroke-dasharray="([^"]+)"', svg))) == 2


def test_dots_are_filled_and_have_no_edge() -> None:
    svg = panel_svg(Panel("p", (Line("a", (0, 1), (0.0, 1.0), tone=0),), (0, 1)), "key")
    dots = re.findall("<circle[^>]*>", svg)
    assert len(dots) == 2
    assert all('fill="var(--tone-0)"' in dot and "stroke" not in dot for dot in dots)
    assert "#000000" not in svg


def test_what_leaves_the_plot_is_clipped_by_ids_that_do_not_meet() -> None:
    beyond = panel(limits=(0.45, 0.55))
    a, b = (set(re.findall(r' id="([^"]+)"', panel_svg(beyond, key))) for key in ("a", "b"))
    assert a
    assert not a & b
    assert "clip-path" not in panel_svg(panel(), "a")


def test_of_a_level_stretch_the_ends_are_drawn_and_gaps_stay_gaps() -> None:
    values = (1.0,) * 50 + (2.0,) * 50 + (math.nan,) + (1.0,) * 49
    svg = panel_svg(Panel("p", (Line("a", tuple(range(150)), values, tone=0),), (0, 149)), "key")
    (path,) = re.findall('d="([^"]+)" stroke="var.--tone-0', svg)
    assert (path.count("M"), path.count("L")) == (2, 4)


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
    names = ("$\\frac{", "数学 <b>", 'style="x:#072b2"')
    lines = tuple(Line(name, (0, 1), (0.0, 1.0), tone=0) for name in names)
    svg = panel_svg(Panel("p", lines, (0, 1)), "key")
    assert "$\\frac{" in svg
    assert "数学 &lt;b&gt;" in svg
    assert '>style="x:#072b2"</text>' in svg
