from __future__ import annotations

import json
import math

from roledrift.report.model import (
    Cell,
    Prose,
    Report,
    RunReport,
    Section,
    Table,
    map_text,
)
from roledrift.report.write import render_json


def report(value: float) -> Report:
    table = Table(("a",), ((Cell("x", value),),))
    section = Section("data", "Data", (table, Prose("text")))
    run = RunReport("run1", "r", "clean", "fine", "fine", ("generator",), (), (section,))
    return Report("r", "0", "roledrift report r", (), (run,))


def test_plain_is_strict_json_with_kinds() -> None:
    body = json.loads(render_json(report(math.nan)))
    blocks = body["runs"][0]["sections"][0]["blocks"]
    assert body["v"] == 4
    assert [block["kind"] for block in blocks] == ["table", "prose"]
    assert blocks[0]["rows"][0][0]["value"] == "NaN"
    json.dumps(body, allow_nan=False)


def test_every_text_is_reached_and_numbers_stay() -> None:
    changed: Report = map_text(report(2.0), str.upper)
    table = changed.runs[0].sections[0].blocks[0]
    assert changed.title == "R"
    assert isinstance(table, Table)
    assert table.columns == ("A",)
    assert table.rows[0][0] == Cell("X", 2.0)
