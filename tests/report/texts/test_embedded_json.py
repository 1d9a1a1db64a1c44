from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace

from roledrift.report.texts.embedded_json import embedded_json, pack
from roledrift.report.texts.text_blocks import Excerpt, TextBrowser

TEXTS = ("</script><b>&amp;", "größer", "line\u2028break", "\ud800")


def block(*, packed: bool) -> TextBrowser:
    items = tuple(
        Excerpt(at, "generator", text, key=f"{at:08x}", prompt="<p>", prompt_text="2 < 3?")
        for at, text in enumerate(TEXTS)
    )
    return TextBrowser("b", "", items, ("generator",), packed)


def test_a_packed_island_holds_the_same_as_a_plain_one() -> None:
    texts = block(packed=True).items[:-1]
    plain = json.loads(embedded_json(replace(block(packed=False), items=texts)))
    letters = json.loads(embedded_json(replace(block(packed=True), items=texts)))
    assert json.loads(gzip.decompress(base64.b64decode(letters))) == plain
    assert [row[-1] for row in plain["rows"]] == list(TEXTS[:-1])
    assert plain["prompts"] == [["<p>", "2 < 3?"]]


def test_no_island_can_close_its_script_or_fail_to_be_written() -> None:
    for packed in (False, True):
        assert not set(embedded_json(block(packed=packed)).encode("utf-8", "replace")) & set(b"<>&")


def test_the_same_text_packs_to_the_same_letters_without_a_time() -> None:
    letters = pack("text")
    assert letters == pack("text")
    assert base64.b64decode(letters)[4:8] == bytes(4)


def test_what_belongs_together_has_one_number() -> None:
    items = tuple(
        Excerpt(0, role, "t", episode=episode)
        for role, episode in (("a", "e"), ("b", "e"), ("a", "f"), ("a", ""), ("a", ""))
    )
    groups = [row[12] for row in json.loads(embedded_json(TextBrowser("b", "", items)))["rows"]]
    assert groups[0] == groups[1]
    assert len({*groups}) == 4
