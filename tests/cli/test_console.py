import json
import os
import subprocess
import sys

import pytest

from roledrift.cli import console
from roledrift.errors import ConfigError, SchemaError, StoreError


@pytest.mark.parametrize(
    ("codes", "worst"),
    [([0, 0], 0), ([0, 3], 3), ([0, 3, 1], 1), ([1, 2, 3, 0], 2), ([0], 0), ([], 3)],
)
def test_the_worst_code_wins_in_the_order_2_1_3_0(codes: list[int], worst: int) -> None:
    assert console.worst(codes) == worst


@pytest.mark.parametrize(
    ("error", "path", "kind"),
    [
        (StoreError("x"), "/nothing/here", "not_found"),
        (StoreError("x"), "/", "unreadable"),
        (StoreError("x"), "s3://bucket/run", "unreadable"),
        (SchemaError("x"), "/", "schema_too_new"),
        (ConfigError("x"), None, "invalid_config"),
        (ZeroDivisionError("x"), None, "internal"),
    ],
)
def test_every_error_has_a_kind_and_a_hint(error: Exception, path: str | None, kind: str) -> None:
    failed = console.failure_of(error, path)
    assert failed.kind == kind
    assert failed.hint


def test_a_failure_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.fail(console.failure("unreadable", "two\nlines \x1b[31mred")) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "roledrift: two lines red\n")


def test_under_json_it_is_an_envelope_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert console.fail(console.failure("usage", "wrong"), as_json=True) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert json.loads(out) == {
        "error": {"kind": "usage", "message": "wrong", "hint": "roledrift --help"}
    }


def test_what_an_output_cannot_hold_gets_a_twin(capfd: pytest.CaptureFixture[str]) -> None:
    script = (
        "from roledrift.cli import console; console.ready_streams(); print('7→16 x² ≥ é…'); "
        "console.say('χ²')"
    )
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env)
    assert (done.returncode, done.stdout) == (0, "7->16 x2 >= ?...\n")
    assert done.stderr == "roledrift: chi2\n"


@pytest.mark.parametrize(("width", "lines"), [(60, 4), (200, 3)])
def test_a_long_last_cell_goes_below(
    width: int, lines: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [("ok", "a" * 20, "short"), ("drift", "b", "a sentence of some length, " * 2)]
    console.print_rows(rows, heads=("state", "name", "why"))
    out = capsys.readouterr().out.splitlines()
    assert len(out) == lines
    assert max(map(len, out)) <= width
    assert not any(line.endswith(" ") for line in out)
    assert out[1] == f"ok     {'a' * 20}  short"


def test_an_extra_that_is_missing_has_a_kind_of_its_own() -> None:
    error = StoreError("install fsspec")
    error.__cause__ = ImportError("no fsspec")
    assert console.failure_of(error, "s3://bucket/run").kind == "missing_extra"
