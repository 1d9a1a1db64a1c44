from __future__ import annotations

from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.build import build_run
from roledrift.report.model import Note, Table
from roledrift.report.paper.wording import TABLES, blocks
from roledrift.report.summary import summarise
from roledrift.report.view import View
from roledrift.report.wording import wording


def test_table_4_reads_both_places_of_a_voting_run(failing: View) -> None:
    one = summarise(failing, build_run(failing, "x"))
    texts = tuple(
        wording(step, role, [Sample(step, role, r"\boxed{1}", prompt="p", tokens=tokens)])
        for step in (5, 9)
        for role, tokens in (("generator", 500), ("aggregator", 4))
    )
    table, *others = blocks([replace(one, wording=texts)])
    assert isinstance(table, Table)
    assert len(table.rows) == 2
    shown = dict(zip(table.columns, (cell.text for cell in table.rows[0]), strict=True))
    assert shown["step"] == "5"
    assert shown["generator: mean length"] == "500"
    assert shown["generator: 3-gram overlap"] == "–"
    assert shown["aggregator: terse"] == "1.00"
    assert all(isinstance(block, Note) for block in others)
    assert len(TABLES) == 3
