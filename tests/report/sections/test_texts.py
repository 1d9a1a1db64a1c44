from __future__ import annotations

from dataclasses import replace

from roledrift.report.excerpts import key
from roledrift.report.model import Browser, Excerpts
from roledrift.report.sections import texts
from roledrift.report.view import View


def test_every_role_has_texts_and_the_browser_has_all(failing: View) -> None:
    blocks = texts.build(failing).blocks
    assert [block.title for block in blocks if isinstance(block, Excerpts)] == [
        "generator", "aggregator",
    ]  # fmt: skip
    browser = blocks[-1]
    assert isinstance(browser, Browser)
    assert len(browser.items) == len(failing.samples) == 40
    assert browser.note == "All 40 texts."
    assert {one.key for one in browser.items} == {key(one) for one in failing.samples}


def test_the_browser_is_thinned_to_its_budget_and_says_so(failing: View) -> None:
    many = tuple(replace(one, text="x" * 5_000) for one in failing.samples for _ in range(30))
    browser = texts.build(replace(failing, samples=many)).blocks[-1]
    assert isinstance(browser, Browser)
    assert max(len(one.text) for one in browser.items) == 1_200
    assert len(browser.items) == 1200
    more = tuple(replace(one, text="x" * 5_000) for one in failing.samples for _ in range(300))
    browser = texts.build(replace(failing, samples=more)).blocks[-1]
    assert isinstance(browser, Browser)
    assert sum(len(one.text) for one in browser.items) <= texts.BUDGET
    assert browser.note.startswith(f"{len(browser.items)} of 12000 texts")
    assert browser.note.endswith("cut to 120 characters for the same reason.")


def test_no_texts(healthy: View) -> None:
    assert [block.kind for block in texts.build(healthy).blocks] == ["note"]
