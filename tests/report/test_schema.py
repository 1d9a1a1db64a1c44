from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from roledrift.report.build import build_report
from roledrift.report.model import Report
from roledrift.report.schema import report_schema
from roledrift.report.write import render_json

COMMITTED = Path(__file__).parents[2] / "docs" / "schemas" / "report.json"


def test_the_committed_schema_is_that_of_the_code() -> None:
    assert json.loads(COMMITTED.read_text()) == report_schema()


def test_real_reports_obey_it(failing_report: Report, write_run: object, tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name, gradients=True, text="x")  # type: ignore[operator]
    for report in (failing_report, build_report(tmp_path)):
        body = json.loads(render_json(report))
        jsonschema.validate(body, report_schema())
        body["runs"][0]["state"] = "fine"
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(body, report_schema())
