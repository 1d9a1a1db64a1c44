from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import jsonschema
import pytest

from roledrift.errors import StoreError
from roledrift.report.build import build_report
from roledrift.report.folder import FolderOptions, write_folder
from roledrift.report.judged_run import Sharing
from roledrift.report.write import write_report
from roledrift.workflow import SINGLE, VOTING
from tools.schemas import report_schema


@pytest.fixture(scope="module")
def folder(write_run: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("study")
    for name, how in (
        ("a", {"inflates": True, "text": "secret 42"}),
        ("b", {"workflow": VOTING.routed("isolated"), "gradients": True}),
        ("c", {"workflow": SINGLE}),
        ("d", {"steps": 0}),
    ):
        write_run(base / name, **how)  # type: ignore[operator]
    return base


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_index_and_a_page_per_run_that_link_to_each_other(
    folder: Path, tmp_path: Path, jobs: int
) -> None:
    told: list[tuple[int, int]] = []
    formats = ("html", "md", "json", "csv", "tex")
    files = write_folder(
        folder,
        tmp_path,
        FolderOptions(formats, jobs=jobs, paper=True),
        seen=lambda *at: told.append(at),
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    index = (tmp_path / "index.html").read_text()
    links = set(re.findall(r'href="(runs/[^"#]+)#', index))
    assert len(links) == 4
    for link in links:
        page = (tmp_path / link).read_text()
        assert 'href="../index.html"' in page
        assert len(page) < 3_000_000
    assert (tmp_path / "tables" / "table2.csv") in files
    assert (tmp_path / "tables" / "table2.tex") in files
    assert len((tmp_path / "report.md").read_text().splitlines()) <= 200
    body = json.loads((tmp_path / "report.json").read_text())
    assert [run["page"] for run in body["runs"]] == sorted(links)
    for run in body["runs"]:
        assert run["sections"] == []
        own = json.loads((tmp_path / run["data"]).read_text())
        jsonschema.validate(own, report_schema())
        assert next(one["key"] for one in own["runs"][0]["sections"]) == "summary"
        assert own["runs"][0]["headline"] == run["headline"]


def test_the_same_folder_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    for out in ("one", "two"):
        write_folder(folder, tmp_path / out)
    files = [file.relative_to(tmp_path / "one") for file in (tmp_path / "one").rglob("*.*")]
    assert files
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_nothing_that_must_not_be_seen_is_in_any_file(folder: Path, tmp_path: Path) -> None:
    formats = ("html", "md", "json", "csv", "tex")
    write_folder(folder, tmp_path / "all", FolderOptions(formats))
    write_folder(folder, tmp_path / "no", FolderOptions(formats, sharing=Sharing(texts=False)))
    redacted = Sharing(redact=re.compile(r"secret \d+"))
    write_folder(folder, tmp_path / "cut", FolderOptions(formats, sharing=redacted))

    def said(name: str) -> str:
        files = sorted(one for one in (tmp_path / name).rglob("*") if one.is_file())
        return "".join(file.read_text() for file in files)

    assert "secret 42" in said("all")
    assert "secret" not in said("no")
    assert "secret" not in said("cut")
    assert "[redacted]" in said("cut")


def test_no_runs_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run in"):
        write_folder(tmp_path, tmp_path / "out")


@pytest.mark.parametrize("runs", ["two", "five"])
def test_an_unreadable_run_is_a_row_and_not_the_end(
    folder: Path, tmp_path: Path, runs: str
) -> None:
    study = tmp_path / "study"
    names = ("a", "b", "c", "d") if runs == "five" else ("a",)
    for name in names:
        shutil.copytree(folder / name, study / name)
    shutil.copytree(folder / "a", study / "broken")
    header = study / "broken" / "run.json"
    header.write_bytes(header.read_bytes()[:200])
    if runs == "five":
        write_folder(study, tmp_path / "out")
    else:
        write_report(build_report(study), tmp_path / "out")
    index = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(index["runs"]) == len(names)
    table = next(one for one in index["overview"] if one.get("key") == "runs")
    assert [row[0]["text"] for row in table["rows"]][-1] == "broken"
    assert table["rows"][-1][1]["text"] == "unreadable"
    assert "not readable as JSON" in table["rows"][-1][2]["text"]
    assert "1 unreadable" in (tmp_path / "out" / "index.html").read_text()


def test_only_unreadable_runs_are_an_error(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / name, tmp_path / name)
        (tmp_path / name / "run.json").write_text("{")
    with pytest.raises(StoreError, match="not readable as JSON"):
        build_report(tmp_path)
    with pytest.raises(StoreError, match="1 more unreadable"):
        write_folder(tmp_path, tmp_path / "out")
