"""The tutorial is run as it stands: its files are saved, its commands are typed."""

import re
import runpy
from pathlib import Path

import pytest

from roledrift.cli.main import main
from roledrift.store.reader import open_run

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
FILE = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```', re.S | re.M)
COMMAND = re.compile(r"^```console\n\$ (.*?)\n(?:exit code (\d)\n)?```", re.S | re.M)
CHANGE = re.compile(r"^```python\n(monitor = .*?)^```", re.S | re.M)
OPENED = re.compile(r"^monitor = open_monitor\(.*?\)\n", re.S | re.M)


def run(command: str) -> int:
    """As a shell would in the present folder, but in this process."""
    program, *arguments = command.split()
    if program == "roledrift":
        return main(arguments)
    (script,) = arguments
    runpy.run_path(script, run_name="__main__")
    return 0


@pytest.mark.slow
def test_the_tutorial_catches_its_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    for name, body in FILE.findall(text):
        (tmp_path / name).write_text(body)
    said: dict[str, str] = {}
    for command, code in COMMAND.findall(text):
        ended = run(command)
        said[command] = "".join(capsys.readouterr())
        assert ended == int(code or 0), f"{command}: {said[command]}"
    assert (
        "open runs/recorded/report/index.html"
        in said["roledrift demo hot-learning-rate -o runs/recorded"]
    )
    assert "The reward has not followed the accuracy since step 4" in said["python train.py"]
    assert "The judge has written" in said["python train.py"]
    assert "runs/tutorial: failing: " in said["roledrift check runs/tutorial"]
    assert "failing" in said["roledrift ls runs"].splitlines()[1]
    assert (tmp_path / "runs/report/index.html").stat().st_size > 100_000
    assert "judge" in said["python look.py"]

    (change,) = CHANGE.findall(text)
    script = tmp_path / "train.py"
    script.write_text(OPENED.sub(lambda _: change, script.read_text(), count=1))
    run("python train.py")
    assert 40 < open_run(tmp_path / "runs/tutorial").steps()[-1].step < 75
