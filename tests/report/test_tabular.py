from __future__ import annotations

import csv
import io

from roledrift.report.cells import UNKNOWN, Cell, Table
from roledrift.report.tabular import to_csv, to_latex

TABLE = Table(
    ("run", "chi²", "gain_%"),
    (
        (Cell("=cmd()", href="#run1"), Cell("0.333", 1 / 3), Cell("+1.0", 1.0)),
        (Cell("a & b_1"), UNKNOWN, Cell("∞", float("inf"))),
    ),
    key="t",
    title="T",
)


def test_csv_has_full_precision_the_run_and_no_formulas() -> None:
    rows = list(csv.reader(io.StringIO(to_csv(TABLE))))
    assert rows[0] == ["run", "chi²", "gain_%", "run"]
    assert rows[1] == ["'=cmd()", "0.3333333333333333", "1", "#run1"]
    assert rows[2] == ["a & b_1", "", "∞", ""]


def test_latex_is_escaped_and_aligned() -> None:
    text = to_latex(TABLE)
    assert r"\begin{tabular}{lrr}" in text
    assert r"run & chi$^2$ & gain\_\% \\" in text
    assert r"a \& b\_1 & -- &" in text
