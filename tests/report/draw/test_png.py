from __future__ import annotations

from dataclasses import replace

from roledrift.report.draw.plots import Dot, Plot
from roledrift.report.draw.png import figure_pngs
from roledrift.report.model import Figure, Report, Section


def test_figures_become_png_of_the_same_bytes(failing_report: Report) -> None:
    run = failing_report.runs[0]
    first = run.sections[0]
    assert any(isinstance(block, Figure) for block in first.blocks)
    plots = tuple(
        Plot(f"p{at}", "t", "c", ("x", "y"), rows=rows, dots=dots, zero=True, diagonal=True)
        for at, (rows, dots) in enumerate(
            (((("cell", (Dot(1.0, "a"),)),), ()), ((), (Dot(1.0, "a", 2.0, 1, 1),)))
        )
    )
    section = Section("summary", "Summary", (*first.blocks, *plots))
    report = replace(failing_report, runs=(replace(run, sections=(section,)),))
    first = dict(figure_pngs(report))
    assert list(first) == [f"{run.key}-cause.png", "p0.png", "p1.png"]
    assert all(body.startswith(b"\x89PNG") for body in first.values())
    assert dict(figure_pngs(report)) == first
