from __future__ import annotations

from roledrift.report.model import map_text
from roledrift.report.texts.text_blocks import Diff, Diffs, Excerpt, Pairing, TextBrowser


def test_signs_of_pieces_survive_cleaning() -> None:
    one = Excerpt(0, "generator", "")
    diff = Diff("k", one, one, (("=", "a"), ("-", "b\x1b[0m"), ("+", "c")))
    cleaned = map_text(diff, lambda text: text.replace("\x1b[0m", ""))
    assert cleaned.pieces == (("=", "a"), ("-", "b"), ("+", "c"))


def test_blocks_say_what_they_are() -> None:
    kinds = [block.kind for block in (Diffs("d", (Pairing(1, "t"),)), TextBrowser("b", "", ()))]
    assert kinds == ["diffs", "browser"]
