import json
import os
import pty
import select
import signal
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
        (["check"], "Missing argument 'RUN'. (roledrift check --help)"),
        (["frobnicate"], "No such command 'frobnicate'. There are check, ls,"),
        (["check", ""], "the path is empty; is a variable not set?"),
        (["compare", "a", " "], "'B': the path is empty"),
        (["check", "a", "--format", "jsn"], "'--format': 'jsn' is not one of 'text', 'markdown'"),
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


def waiting(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts jobs in the background lets its children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


LONG = """
import sys, time
from roledrift.cli import main
@main.app.command("long")
def long() -> None:
    print("begun", file=sys.stderr, flush=True)
    time.sleep(600)
sys.argv[1:] = ["long"]
main.run()
"""


def test_ctrl_c_is_130_without_a_traceback() -> None:
    child = waiting([sys.executable, "-c", LONG])
    assert child.stderr is not None
    assert child.stderr.readline() == "begun\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate()
    assert (child.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_reader_that_leaves_early_is_not_a_finding(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", 3)
    os.mkfifo(path / "steps.pipe.jsonl")
    child = waiting([*COMMAND, "check", str(path)])
    pipe = os.open(path / "steps.pipe.jsonl", os.O_WRONLY)  # returns when it reads the run
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
    (out, its_out), (err, its_err) = pty.openpty(), pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    child = subprocess.Popen([*COMMAND, *arguments], stdout=its_out, stderr=its_err, env=env)
    os.close(its_out)
    os.close(its_err)
    seen, written = {out: b"", err: b""}, [out, err]
    while written:
        for terminal in select.select(written, [], [])[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # Linux ends a terminal whose other side has closed like this.
                part = b""
            seen[terminal] += part
            if not part:
                written.remove(terminal)
                os.close(terminal)
    child.wait()
    return seen[out].decode(), seen[err].decode()


def test_colour_on_a_terminal_unless_no_color(tmp_path: Path) -> None:
    drift = str(write_run(tmp_path / "drift", inflate_from=15))
    assert "\x1b[1;31mfailing" in on_a_terminal(["check", drift])[0]
    assert "31mfailing" not in on_a_terminal(["check", drift], NO_COLOR="1")[0]


def test_progress_is_shown_on_a_terminal_only(tmp_path: Path) -> None:
    drift = str(write_run(tmp_path / "drift", inflate_from=15))
    arguments = ["report", drift, "-o", str(tmp_path / "out"), "--format", "md"]
    out, err = on_a_terminal(arguments)
    assert "reading and judging" in err
    assert "reading and judging" not in out
    assert run(*arguments).stderr == ""


@pytest.mark.parametrize("arguments", [["ls", "--json"], ["check"], ["watch", "--once"]])
def test_a_closed_output_does_not_change_the_verdict(arguments: list[str], tmp_path: Path) -> None:
    drift = write_run(tmp_path / "drift", inflate_from=15)
    command = " ".join([*COMMAND, *arguments, str(drift)])
    done = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0 if "ls" in arguments else 1, "")


@pytest.mark.parametrize("arguments", [["ls", "--json"], ["check"]])
def test_a_full_disk_is_2_and_one_line(arguments: list[str], tmp_path: Path) -> None:
    drift = write_run(tmp_path / "drift", inflate_from=15)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, *arguments, str(drift)], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2
    said = "roledrift: standard output cannot be written (No space left on device)\n"
    assert done.stderr == said


def test_an_output_that_is_not_utf_8(tmp_path: Path) -> None:
    drift = write_run(tmp_path / "drift", inflate_from=15)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*COMMAND, "doctor", drift], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Movement per update (chi2)" in done.stdout


WORDS = [
    *("check", "ls", "watch --once", "compare", "doctor", "import --dry-run", "report --format md"),
    *("--json", "--format", "junit", "--fail-on", "error", "--detector", "hygiene", "--all"),
    *("--config", "--roles", "0=a:b", "--as", "table", "--mapping", "--by", "--redact"),
    *("(", "", " ", "-", "--", "--no-such", "\x00", "\udcff", "ä" * 300, "nan", "run", "log.csv"),
    *(".", "empty", "gone", "run/run.json", "run/..", "s3://", "file:///", "-x", "@run"),
]


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(verb=st.sampled_from(WORDS[:7]), words=st.lists(st.sampled_from(WORDS[7:]), max_size=4))
def test_whatever_is_typed_there_is_no_traceback(
    verb: str, words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*verb.split(), *words])
    out, err = capsys.readouterr()
    assert code in (0, 1, 2, 3)
    assert "Traceback" not in out + err
    assert "please report it" not in err, (verb, words, err)
    as_json = "--json" in takewhile("--".__ne__, words)  # behind it, everything is a path
    if code == 2 and not as_json:
        assert err.startswith("roledrift: ")
    if as_json:
        body = json.loads(out)
        assert body.get("error", {}).get("kind") != "internal", (verb, words, body)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    if not (tmp_path / "run").exists():
        write_run(tmp_path / "run", 12)
        (tmp_path / "empty").mkdir()
        (tmp_path / "log.csv").write_text("step,role,text\n1,solver,hello\n")
    return tmp_path
