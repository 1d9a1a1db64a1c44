from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from roledrift.cli.check import check_run
from roledrift.cli.main import main
from roledrift.store.reader import open_run
from tests.cli.runs import write_run


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    drift = write_run(tmp_path / "drift", inflate_from=15)
    return [str(drift), str(write_run(tmp_path / "short", 3)), str(tmp_path / "no")]


@pytest.mark.parametrize("style", ["markdown", "github", "junit", "text"])
def test_the_exit_code_does_not_depend_on_the_format(
    paths: list[str], style: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *paths[:2], "--format", style]) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_github_annotates_findings_and_what_could_not_be_done(
    paths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", *paths, "--format", "github"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("::error title=failing%3A aggregator length_inflation::")
    assert lines[1].startswith("::warning title=no verdict::")
    assert lines[2].startswith("::error title=could not check::")


def test_junit_is_xml_and_no_verdict_is_skipped(
    paths: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", *paths, "--format", "junit"])
    root = ElementTree.fromstring(capsys.readouterr().out.split("\n", 1)[1])
    kinds = [case[0].tag if len(case) else "passed" for case in root.iter("testcase")]
    assert "failure" in kinds
    assert "skipped" in kinds
    assert kinds[-1] == "error"
    (incident,) = check_run(open_run(paths[0])).incidents
    assert incident.sentence in [case.get("message") for case in root.iter("failure")]


def test_markdown_is_tables(paths: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", paths[0], "--format", "markdown"])
    out = capsys.readouterr().out
    assert out.startswith("| run | outcome | why |")
    assert "<script>" not in out
