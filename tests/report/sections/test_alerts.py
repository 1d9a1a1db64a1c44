from __future__ import annotations

from dataclasses import replace

from roledrift.records import Checkpoint
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import AlertCard, Figure, Note, Prose, Table
from roledrift.report.sections import alerts
from tests.notify.alerts import ALERT
from tests.report.conftest import judged


def test_every_alert_has_a_card_with_its_evidence(failing: JudgedRun) -> None:
    section = alerts.build(failing)
    cards = [block for block in section.blocks if isinstance(block, AlertCard)]
    assert len(cards) == len(failing.findings)
    length = next(card for card in cards if "written" in card.title)
    assert [block.kind for block in length.blocks] == ["prose", "prose", "figure", "table", "prose"]
    figure, numbers = length.blocks[2:4]
    assert isinstance(figure, Figure)
    (panel,) = figure.panels
    assert [line.label for line in panel.lines] == ["generator", "aggregator"], "all roles overlaid"
    assert panel.log, "10 and 100 tokens on one axis"
    assert isinstance(numbers, Table)
    assert numbers.rows[0][0].text == "Response length, tokens, mean"
    assert numbers.rows[0][4].text.startswith("x")


def test_missing_curves_become_a_note(failing: JudgedRun) -> None:
    alert = replace(failing.findings[0].alert, statistic="unheard-of")
    bare = judged(replace(failing, replay=replace(failing.replay, series={})), alert)
    card = next(block for block in alerts.build(bare).blocks if isinstance(block, AlertCard))
    notes = [block.text for block in card.blocks if isinstance(block, Note)]
    assert notes == ["The detector gave no curve of its statistic."]


def test_how_sure_a_finding_is_and_no_plan_of_its_own(failing: JudgedRun) -> None:
    kept = Checkpoint(4, "runs/checkpoint-4")
    told = [
        replace(one, evidence=12.3, chance="against 8 needed", checkpoint=kept)
        for one in failing.replay.alerts
    ]
    run = replace(failing, replay=replace(failing.replay, alerts=tuple(told)))
    card = next(block for block in alerts.build(run).blocks if isinstance(block, AlertCard))
    prose = [block.text for block in card.blocks if isinstance(block, Prose)]
    assert prose[1] == "How sure: evidence 12.3 against 8 needed."
    assert prose[2].startswith("Threshold and advice rest on")


def test_no_alerts_is_not_the_same_as_nobody_looked(healthy: JudgedRun, empty: JudgedRun) -> None:
    assert [block.kind for block in alerts.build(healthy).blocks] == ["prose"]
    assert [block.kind for block in alerts.build(empty).blocks] == ["note"]


def test_a_second_alert_from_the_same_step_does_not_repeat_the_numbers(failing: JudgedRun) -> None:
    first = failing.replay.alerts[0]
    both = (*failing.replay.alerts, replace(first, id="again", detector="lazy_role"))
    run = replace(failing, replay=replace(failing.replay, alerts=both))
    cards = [block for block in alerts.build(run).blocks if isinstance(block, AlertCard)]
    own = [card for card in cards if f"onset at step {first.onset}," in card.facts]
    assert len(own) >= 2
    assert sum(isinstance(one, Table) for card in own for one in card.blocks) == 1


def test_numbers_are_the_end_and_the_extreme_and_not_a_mean_over_both(failing: JudgedRun) -> None:
    """A reward that rises to 0.94 and then falls to 0.05 has not changed from 0.55 to 0.48."""
    reward = dict.fromkeys(range(20), 0.55)
    reward |= dict.fromkeys(range(20, 30), 0.94) | dict.fromkeys(range(30, 40), 0.05)
    records = [
        replace(one, groups={**one.groups, "aggregator": {
            **one.groups["aggregator"],
            "reward": replace(one.groups["aggregator"]["reward"], mean=reward[one.step])}})
        for one in failing.records
    ]  # fmt: skip
    run = replace(failing, records=tuple(records))
    length = next(one for one in run.findings if one.alert.role == "aggregator")
    card = next(
        block
        for block in alerts.build(run).blocks
        if isinstance(block, AlertCard) and length.alert.id in block.key
    )
    table = next(block for block in card.blocks if isinstance(block, Table))
    row = next(row for row in table.rows if row[0].text.startswith("Reward"))
    assert [cell.text for cell in row[1:]] == ["0.55", "0.05", "0.05", "x0.09"]
    assert [cell.note for cell in row[2:4]] == ["step 30", "step 39"]


def test_numbers_name_what_did_not_change_in_one_line(failing: JudgedRun) -> None:
    card = next(block for block in alerts.build(failing).blocks if isinstance(block, AlertCard))
    table = next(block for block in card.blocks if isinstance(block, Table))
    assert "Ended within a tenth of their start: reward" in table.caption
    assert not [row for row in table.rows if row[0].text.startswith("Reward")]


def test_further_incidents_are_told_in_their_own_words(failing: JudgedRun) -> None:
    other = replace(ALERT, id="o", role="generator", onset=90, step=95, severity="suspicious")
    run = judged(failing, ALERT, other)
    note = next(one for one in alerts.build(run).blocks if isinstance(one, Note))
    assert note.items == (run.replay.incidents[1].sentence,)
