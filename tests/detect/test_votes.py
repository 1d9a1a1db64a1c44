from __future__ import annotations

from roledrift.detect.votes import Tally, Vote


def test_what_was_not_measured_is_neither_for_nor_against() -> None:
    tally = Tally([Vote("a", True), Vote("b", None), Vote("c", False)])
    assert (tally.yes, tally.known, tally.missing) == (1, 2, ("b",))
    assert str(tally) == "1 of 3 signs: a (not measured: b)"


def test_nothing_seen() -> None:
    assert str(Tally([Vote("a", False)])) == "0 of 1 signs"
