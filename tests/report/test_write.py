from __future__ import annotations

import json
from pathlib import Path

import pytest

from roledrift.errors import ConfigError, StoreError
from roledrift.report.model import Report
from roledrift.report.write import render_json, write_report


def test_three_files_and_nothing_else(failing_report: Report, tmp_path: Path) -> None:
    files = write_report(failing_report, tmp_path / "new" / "report")
    assert [file.name for file in files] == ["index.html", "report.md", "report.json"]
    assert sorted(tmp_path.joinpath("new", "report").iterdir()) == sorted(files)
    body = json.loads(files[2].read_text(encoding="utf-8"))
    assert body == json.loads(render_json(failing_report))


def test_only_what_is_asked_for(failing_report: Report, tmp_path: Path) -> None:
    assert [one.name for one in write_report(failing_report, tmp_path, ("md",))] == ["report.md"]


def test_unknown_formats_and_unwritable_places_are_refused(
    failing_report: Report, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"unknown report formats \['pdf'\]"):
        write_report(failing_report, tmp_path, ("pdf",))
    blocker = tmp_path / "file"
    blocker.write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_report(failing_report, blocker, ("md",))
