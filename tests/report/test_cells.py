from __future__ import annotations

from roledrift.report.cells import UNKNOWN, Cell


def test_nothing_known_has_no_value() -> None:
    assert Cell("–") == UNKNOWN
    assert UNKNOWN.value is None
