import json
import math

from roledrift.records import Sample
from roledrift.view.documents import LONGEST, dumps, harmless, statistic, text


def test_numbers_that_are_not_finite_are_null() -> None:
    assert json.loads(dumps({"a": [math.nan, math.inf, 1.5, None]})) == {
        "a": [None, None, 1.5, None]
    }


def test_every_text_is_harmless() -> None:
    body = harmless({"a\x1b[2J": ["\u202ex", ("y\x00", 3)]})
    assert body == {"a": ["x", ["y", 3]]}


def test_a_statistic_has_a_title_and_a_unit() -> None:
    assert statistic("update.k3") == {
        "name": "update.k3", "title": "Movement per update (k3)", "unit": "nats per token",
        "log": True,
    }  # fmt: skip
    assert statistic("length")["unit"] == "tokens"
    assert statistic("mine.odd")["title"] == "Mine.odd"


def test_a_long_text_is_cut_with_a_remark() -> None:
    shown = text(Sample(1, "generator", "x" * 100_000))
    assert len(shown["text"]) < LONGEST + 20
    assert "100,000" in shown["remark"]
