import json

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
