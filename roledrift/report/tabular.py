"""Tables as CSV and LaTeX, for papers and spreadsheets."""

from __future__ import annotations

import csv
import io
import math

from roledrift.report.cells import Cell, Table
from roledrift.report.model import Report

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "–": "--", "χ": r"$\chi$", "²": r"$^2$", "×": r"$\times$", "→": r"$\to$", "√": r"$\surd$",
}  # fmt: skip


def tables(report: Report) -> tuple[Table, ...]:
    """Return the overview's tables that have a key, and so files of their own."""
    return tuple(block for block in report.overview if isinstance(block, Table) and block.key)


def to_csv(table: Table) -> str:
    """Write a table as CSV with full precision; the last column links each row to its run."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*table.columns, "run"])
    for row in table.rows:
        href = next((cell.href for cell in row if cell.href), "")
        writer.writerow([*(_value(cell) for cell in row), href])
    return out.getvalue()


def _value(cell: Cell) -> str:
    if cell.value is None or not math.isfinite(cell.value):
        text = "" if cell.text == "–" else cell.text
        # A spreadsheet would run a cell that begins like a formula.
        return "'" + text if text[:1] in ("=", "+", "-", "@") else text
    return repr(int(cell.value)) if cell.value == int(cell.value) else repr(cell.value)


def to_latex(table: Table) -> str:
    """Write a table as a LaTeX ``tabular`` with booktabs rules."""
    numeric = [
        any(row[index].value is not None for row in table.rows)
        for index in range(len(table.columns))
    ]
    spec = "".join("r" if is_number else "l" for is_number in numeric)
    head = " & ".join(_latex(column) for column in table.columns)
    body = [" & ".join(_latex(cell.text) for cell in row) + r" \\" for row in table.rows]
    lines = [
        f"% {' '.join(table.title.split())}",
        rf"\begin{{tabular}}{{{spec}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in " ".join(text.split()))
