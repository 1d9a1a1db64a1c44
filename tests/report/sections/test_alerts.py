from __future__ import annotations

from dataclasses import replace

from roledrift.judgement import TextPair
from roledrift.records import Checkpoint
from roledrift.report.model import Card, Figure, Note, Pairs, Prose, Table
from roledrift.report.sections import alerts
from roledrift.report.view import View


def test_every_alert_has_a_card_with_its_evidence(failing: View) -> None:
    section = alerts.build(failing)
    cards = [block for block in section.blocks if isinstance(block, Card)]
    assert section.count == len(cards) == len(failing.findings)
    length = next(card for card in cards if "written" in card.title)
    kinds = [block.kind for block in length.blocks]
    assert kinds == ["prose", "prose", "figure", "table", "prose", "pairs"]
    figure, numbers, sources, pairs = length.blocks[2:6]
    assert isinstance(sources, Prose)
    assert "arXiv" in sources.text
    assert isinstance(figure, Figure)
    assert [line.style for line in figure.panels[0].lines] == ["main"]
    assert isinstance(numbers, Table)
    assert numbers.rows[0][0].text == "Response length, tokens, median"
    assert numbers.rows[0][3].text.startswith("x")
    assert isinstance(pairs, Pairs)


def test_missing_texts_and_curves_become_notes(failing: View) -> None:
    bare = replace(failing, samples=(), replay=replace(failing.replay, series={}))
    card = next(block for block in alerts.build(bare).blocks if isinstance(block, Card))
    notes = [block.text for block in card.blocks if isinstance(block, Note)]
    assert notes[0] == "The detector gave no curve of its statistic."
    assert notes[1].startswith("No texts of aggregator from both sides")


def test_what_the_alert_carries_is_shown(failing: View) -> None:
    worst = failing.findings[0].alert
    kept = Checkpoint(4, "runs/checkpoint-4")
    pair = TextPair(1, 30, "short <b>", "long and long", "p")
    told = [
        replace(one, evidence=12.3, chance="against 8 needed", checkpoint=kept)
        for one in failing.replay.alerts
    ]
    live = tuple(replace(one, pairs=(pair,)) for one in failing.replay.alerts)
    view = replace(
        failing,
        samples=(),
        live_alerts=live,
        replay=replace(failing.replay, alerts=tuple(told)),
    )
    card = next(
        block
        for block in alerts.build(view).blocks
        if isinstance(block, Card) and worst.id in block.key
    )
    prose = [block.text for block in card.blocks if isinstance(block, Prose)]
    assert prose[1] == "How sure: evidence 12.3 against 8 needed."
    assert len(prose) == 3, "the plan and the checkpoint are told once, with the incident"
    assert prose[2].startswith("Threshold and advice rest on")
    (pairs,) = (block for block in card.blocks if isinstance(block, Pairs))
    (diff,) = pairs.pairs
    assert (diff.left.step, diff.right.step, diff.remark) == (1, 30, "Same prompt.")


def test_no_alerts_is_not_the_same_as_nobody_looked(healthy: View, empty: View) -> None:
    assert [block.kind for block in alerts.build(healthy).blocks] == ["prose"]
    assert [block.kind for block in alerts.build(empty).blocks] == ["note"]


def test_a_second_alert_from_the_same_step_does_not_repeat_the_first(failing: View) -> None:
    first = failing.replay.alerts[0]
    both = (*failing.replay.alerts, replace(first, id="again", detector="lazy_role"))
    view = replace(failing, replay=replace(failing.replay, alerts=both))
    cards = [block for block in alerts.build(view).blocks if isinstance(block, Card)]
    its = [card for card in cards if f"onset at step {first.onset}," in card.facts]
    assert len(its) >= 2
    tables = [one for card in its for one in card.blocks if isinstance(one, Table)]
    assert [one.collapsed for one in tables] == [False, True] + [True] * (len(tables) - 2)
    assert sum(isinstance(one, Pairs) for card in its for one in card.blocks) == 1


def test_numbers_name_what_did_not_change_in_one_line(failing: View) -> None:
    card = next(block for block in alerts.build(failing).blocks if isinstance(block, Card))
    table = next(block for block in card.blocks if isinstance(block, Table))
    assert "Within a tenth of before: reward" in table.caption
    assert not [row for row in table.rows if row[0].text.startswith("Reward")]
