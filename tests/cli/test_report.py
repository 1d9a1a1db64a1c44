import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roledrift.cli.main import app
from tests.cli.runs import write_run


def report(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


def test_it_writes_what_it_names(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", inflate_from=15)
    code, out, err = report(run, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    written = [Path(line) for line in out.splitlines()]
    assert {file.suffix for file in written} == {".html", ".md", ".json"}
    assert all(file.stat().st_size > 0 for file in written)
    assert json.loads(next(f for f in written if f.suffix == ".json").read_text())


def test_one_format_of_a_folder_of_runs(tmp_path: Path) -> None:
    write_run(tmp_path / "runs/a")
    write_run(tmp_path / "runs/b", inflate_from=15)
    code, out, _ = report(tmp_path / "runs", "-o", tmp_path / "out", "--format", "md")
    assert code == 0
    (file,) = out.splitlines()
    assert "aggregator" in Path(file).read_text()


@pytest.mark.parametrize(
    ("formats", "said"),
    [("htm", "did you mean 'html'?"), ("", "known are"), ("md,x", "md")],
)
def test_an_unknown_format_is_2(tmp_path: Path, formats: str, said: str) -> None:
    code, out, err = report(tmp_path, "--format", formats)
    assert (code, out) == (2, "")
    assert said in err


def test_nothing_to_report_is_3_and_a_missing_path_is_2(tmp_path: Path) -> None:
    code, _, err = report(tmp_path, "-o", tmp_path / "out")
    assert code == 3
    assert "no run found here" in err
    assert report(tmp_path / "nothing")[0] == 2
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_read_or_written_is_2_in_one_line(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", 3)
    (tmp_path / "file").write_text("in the way")
    code, _, err = report(run, "-o", tmp_path / "file")
    assert (code, err.count("\n")) == (2, 1)
    code, _, err = report(run, "--config", tmp_path / "nothing.toml", "-o", tmp_path / "out")
    assert code == 2
    assert "nothing.toml" in err


def test_the_page_is_opened_in_the_users_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run")
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {tmp_path}/opened\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    command = [sys.executable, "-m", "roledrift", "report", str(run), "-o", "out", "--open"]
    subprocess.run(command, check=True, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "opened").read_text() == (tmp_path / "out" / "index.html").as_uri()
    code, _, err = report(run, "-o", tmp_path / "out", "--open", "--format", "md")
    assert (code, "--open needs html" in err) == (2, True)


def test_runs_are_grouped_by_a_key_that_they_have(tmp_path: Path) -> None:
    for name in "abcd":
        write_run(tmp_path / "runs" / name, 12)
    code, _, _ = report(tmp_path / "runs", "-o", tmp_path / "out", "--by", "policy,task")
    assert code == 0
    code, _, err = report(tmp_path / "runs", "-o", tmp_path / "out", "--by", "colour")
    assert (code, "cannot be grouped by 'colour'" in err) == (2, True)


def test_one_picture_for_a_chat(tmp_path: Path) -> None:
    code, out, _ = report(write_run(tmp_path / "run"), "-o", tmp_path / "out", "--format", "status")
    assert (code, Path(out.strip()).name) == (0, "status.png")
