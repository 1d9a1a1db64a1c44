import json
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from roledrift.cli.main import main
from roledrift.view.server import listen
from tests.cli.runs import write_run


def test_it_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    write_run(tmp_path / "runs" / "a", steps=3)
    command = [sys.executable, "-m", "roledrift", "view", str(tmp_path / "runs"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().strip()
        assert httpx.get(f"{url}api/runs").json()["runs"][0]["name"] == "a"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Ctrl-C stops the view" in said
    assert b"Traceback" not in said


def test_a_copy_names_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(tmp_path / "runs" / "a", steps=3)
    site = tmp_path / "site"
    assert main(["view", str(tmp_path / "runs"), "--export", str(site), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == {"schema": "roledrift.view/1", "address": str(site / "index.html")}
    assert (site / "index.html").is_file()


def test_what_goes_wrong_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", str(tmp_path / "nowhere")]) == 2
    with listen("127.0.0.1", 0) as bound:
        taken = str(bound.getsockname()[1])
        assert main(["view", str(tmp_path), "--port", taken]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert "no such directory" in first
    assert f"127.0.0.1:{taken}" in second
    assert "--port 0" in second
