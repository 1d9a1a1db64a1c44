from dataclasses import replace

from roledrift.notify.message import body, certainty, strength, subject, title
from tests.notify.alerts import ALERT, HEADER, INCIDENT, NOTICE


def test_a_notice_begins_with_the_sentence_of_the_incident() -> None:
    assert title(NOTICE) == "failing: aggregator, length_inflation since step 19"
    assert subject(NOTICE, HEADER) == f"voting <7B> {title(NOTICE)}"
    assert body(NOTICE, HEADER).splitlines() == [
        INCIDENT.sentence,
        "Responses are 3.1 times as long as at the start.",
        "length 15.6, limit 7.5, baseline 5",
        "evidence 12.34 against 8 needed",
        "This finding stops the run.",
        "Last clean checkpoint: step 15, out/checkpoint-15",
        "1. stop, or roll back",
        "2. cap the answers of aggregator: max_completion_length=<tokens>",
        "Run voting <7B>, step 23, incident a3f2c1d0 of trl.GRPOTrainer.",
    ]


def test_a_closed_incident_is_told_without_advice() -> None:
    over = replace(INCIDENT, state="closed", sentence="It has passed.")
    notice = replace(NOTICE, change="closed", incident=over, text=over.sentence, stops=False)
    assert title(notice).startswith("closed: aggregator")
    lines = body(replace(notice, alert=None), HEADER).splitlines()
    assert lines[0] == "It has passed."
    assert not any("roll back" in line or "checkpoint" in line for line in lines)


def test_a_further_finding_is_two_lines() -> None:
    notice = replace(NOTICE, change="followed", text="answers truncated (incident a3f2c1d0)")
    assert len(body(notice, HEADER).splitlines()) == 2


def test_texts_are_told_only_if_asked_for() -> None:
    assert "boxed" not in body(NOTICE, HEADER)
    assert body(NOTICE, HEADER, texts=True).splitlines()[-3:-1] == [
        "step 2: \\boxed{2}",
        "step 23: Well, @everyone <!channel> \\boxed{2}",
    ]


def test_what_is_not_known_is_left_out() -> None:
    bare = replace(ALERT, value=None, evidence=None, chance="", checkpoint=None, stops=False)
    assert strength(bare) == certainty(bare) == ""
    assert certainty(replace(bare, evidence=3.0)) == "evidence 3"
