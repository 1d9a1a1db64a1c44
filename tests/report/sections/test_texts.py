from __future__ import annotations

import random
import re
from dataclasses import replace

from roledrift.records import Sample
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Diffs, TextBrowser
from roledrift.report.sections import texts
from roledrift.report.texts.embedded_json import embedded_json
from roledrift.report.texts.excerpts import key


def test_the_browser_has_all_texts(failing: JudgedRun) -> None:
    section = texts.build(failing)
    assert section.summary == "40 kept, of 10 steps"
    browser = section.blocks[-1]
    assert isinstance(browser, TextBrowser)
    assert len(browser.items) == len(failing.samples) == 40
    assert browser.note == "All 40 texts."
    assert {one.key for one in browser.items} == {key(one) for one in failing.samples}


def browser_of(run: JudgedRun) -> TextBrowser:
    found = texts.build(run).blocks[-1]
    assert isinstance(found, TextBrowser)
    return found


def test_texts_are_packed_before_they_are_cut(failing: JudgedRun) -> None:
    few = browser_of(failing)
    assert not few.packed
    many = tuple(replace(one, text="many words " * 450) for one in failing.samples * 20)
    browser = browser_of(replace(failing, samples=many))
    assert browser.packed
    assert len(browser.items) == 800
    assert browser.note == "All 800 texts."
    assert all(one.text.count("many") > 350 for one in browser.items)


def test_texts_are_cut_before_they_are_thinned(failing: JudgedRun) -> None:
    draw = random.Random(1)
    noise = [draw.randbytes(1_200).hex() for _ in range(400)]
    many = tuple(
        replace(one, text=noise[at % 400][at % 97 :], episode=f"{one.step}-{at // 2}")
        for at, one in enumerate(failing.samples * 150)
    )
    browser = browser_of(replace(failing, samples=many))
    assert browser.packed
    assert re.fullmatch(
        "All 6,000 texts. Each is cut to [0-9,]+ characters for the same reason.", browser.note
    )
    assert len(browser.items) == 6_000
    assert len(embedded_json(browser)) <= texts.BUDGET


def test_thinning_keeps_whole_episodes_and_what_is_linked_to(failing: JudgedRun) -> None:
    draw = random.Random(1)
    many = tuple(
        Sample(step, role, draw.randbytes(60).hex(), prompt=f"p{at}", episode=f"{step}-{at}")
        for step in range(40)
        for at in range(400)
        for role in failing.roles
    )
    run = replace(failing, samples=many)
    blocks = texts.build(run).blocks
    diffs, browser = blocks[-2:]
    assert isinstance(diffs, Diffs)
    assert isinstance(browser, TextBrowser)
    assert 1_000 < len(browser.items) < len(many)
    assert browser.note.startswith(f"{len(browser.items):,} of {len(many):,} texts, evenly spread")
    assert len({(one.step, one.episode) for one in browser.items}) * 2 == len(browser.items)
    held = {one.key for one in browser.items}
    for pairing in diffs.pairings:
        for diff in pairing.diffs:
            assert {diff.left.key, diff.right.key} <= held
    assert len(embedded_json(browser)) <= texts.BUDGET


def test_a_role_that_no_one_registered_is_shown_too(failing: JudgedRun) -> None:
    odd = replace(
        failing, samples=(*failing.samples, Sample(0, "stranger", "who am I", prompt="p"))
    )
    assert "who am I" in {one.text for one in browser_of(odd).items}


def test_no_texts(healthy: JudgedRun) -> None:
    assert [block.kind for block in texts.build(healthy).blocks] == ["note"]
