from __future__ import annotations

from dataclasses import replace

from roledrift.config import CostsConfig
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Prose, Table
from roledrift.report.sections import costing


def _table(run: JudgedRun) -> dict[str, tuple[str, str]]:
    prose, table = costing.build(run).blocks
    assert isinstance(prose, Prose)
    assert isinstance(table, Table)
    return {row[0].text: (row[1].text, row[2].text) for row in table.rows}


def test_what_is_unknown_is_unknown_and_says_why(empty: JudgedRun) -> None:
    table = _table(empty)
    assert table["GPUs"] == ("unknown", "neither recorded nor given (--devices)")
    assert {table[what][0] for what in ("GPU hours", "cost", "wall time, h")} == {"unknown"}


def test_every_number_says_what_it_rests_on(failing: JudgedRun) -> None:
    given = replace(failing.config, costs=CostsConfig(devices=8, gpu_hour=2.5))
    table = _table(replace(failing, config=given))
    assert table["GPUs"][0] == "8"
    assert table["cost of a GPU hour"][0] == "2.5"
    known = {what: rests for what, (value, rests) in table.items() if value != "unknown"}
    assert [what for what, rests in known.items() if not rests] == ["optimizer steps"]
