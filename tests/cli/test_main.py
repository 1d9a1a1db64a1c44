import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from roledrift import __version__
from roledrift.cli.main import main
from tests.cli.runs import write_run

COMMAND = [sys.executable, "-m", "roledrift"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True)


def test_exit_codes_of_the_real_command(tmp_path: Path) -> None:
    clean = write_run(tmp_path / "clean")
    drift = write_run(tmp_path / "drift", inflate_from=15)
    short = write_run(tmp_path / "short", 3)
    codes = [run("check", path).returncode for path in (clean, drift, tmp_path / "no", short)]
    assert codes == [0, 1, 2, 3]


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path) -> None:
    drift = write_run(tmp_path / "drift", inflate_from=15)
    for verb in ("check", "ls"):
        done = run(verb, drift)
        assert "\x1b" not in done.stdout + done.stderr
        assert "owned" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek"], "Did you mean 'check'?"),
        (["ls", "--jsno"], "Did you mean --json?"),
        (["check"], "Missing argument 'RUN...'"),
        (["frobnicate"], "No such command 'frobnicate'"),
    ],
)
def test_wrong_usage_is_one_line_and_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


def test_wrong_usage_under_json_is_an_envelope(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out)["error"]["kind"] == "usage"


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["check", "-h"], ["ls", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert "Usage: roledrift" in capsys.readouterr().out


def test_versions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"roledrift {__version__}, python 3.")
    assert "torch" in out


def test_help_and_version_load_nothing_heavy() -> None:
    script = (
        "import sys; from roledrift.cli.main import main;"
        "main(['check', '-h']); main(['--version']);"
        "heavy = {'numpy', 'pandas', 'matplotlib', 'pyarrow', 'torch', 'jinja2', 'scipy'};"
        "sys.exit(', '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def waiting_for_a_pipe(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """``roledrift check`` in the middle of reading a run whose steps never end."""
    path = write_run(folder / "run", 3)
    os.mkfifo(path / "steps.pipe.jsonl")
    child = subprocess.Popen(
        [*COMMAND, "check", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return child, os.open(path / "steps.pipe.jsonl", os.O_WRONLY)


def test_ctrl_c_is_130_without_a_traceback(tmp_path: Path) -> None:
    child, pipe = waiting_for_a_pipe(tmp_path)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    os.close(pipe)
    assert (child.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_reader_that_leaves_early_is_not_a_finding(tmp_path: Path) -> None:
    child, pipe = waiting_for_a_pipe(tmp_path)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    os.close(pipe)
    err = child.stderr.read()
    child.stderr.close()
    assert child.wait() == 2
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


BUG = """
import sys
from roledrift.cli import main
@main.app.command("bug")
def bug() -> None:
    raise ZeroDivisionError("a bug")
sys.exit(main.main(["bug"]))
"""


def test_a_bug_is_2_and_one_line_unless_asked_for_more() -> None:
    done = subprocess.run([sys.executable, "-c", BUG], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("roledrift: ZeroDivisionError: a bug (set ROLEDRIFT_STRICT=1")
    strict = {**os.environ, "ROLEDRIFT_STRICT": "1"}
    done = subprocess.run([sys.executable, "-c", BUG], capture_output=True, text=True, env=strict)
    assert "Traceback" in done.stderr


def on_a_terminal(arguments: list[str], **environment: str) -> tuple[str, str]:
    """Standard output and standard error of the command when both are terminals."""
    seen = []
    for stream in ("stdout", "stderr"):
        ours, theirs = pty.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
        child = subprocess.Popen(
            [*COMMAND, *arguments],
            stdout=theirs if stream == "stdout" else subprocess.DEVNULL,
            stderr=theirs if stream == "stderr" else subprocess.DEVNULL,
            env=env,
        )
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # Linux ends a terminal whose other side has closed like this.
                break
            if not part:
                break
            text += part
        os.close(ours)
        child.wait()
        seen.append(text.decode())
    return seen[0], seen[1]


def test_colour_on_a_terminal_unless_no_color(tmp_path: Path) -> None:
    drift = str(write_run(tmp_path / "drift", inflate_from=15))
    assert "\x1b[31mfindings" in on_a_terminal(["check", drift])[0]
    assert "\x1b[31m" not in on_a_terminal(["check", drift], NO_COLOR="1")[0]


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    drift = str(write_run(tmp_path / "drift", inflate_from=15))
    arguments = ["report", drift, "-o", str(tmp_path / "out"), "--format", "md"]
    out, err = on_a_terminal(arguments)
    assert "reading and judging" in err
    assert "reading and judging" not in out
    assert run(*arguments).stderr == ""
