from dataclasses import replace

from roledrift.notify.message import body, certainty, strength, subject
from tests.notify.alerts import ALERT, HEADER


def test_an_alert_says_who_since_when_how_strong_how_sure_and_what_to_do() -> None:
    assert subject(ALERT, HEADER) == ("ERROR voting <7B>: aggregator: answers x3.1 since step 19")
    assert body(ALERT, HEADER).splitlines() == [
        "Answers x3.1 of the baseline.",
        "aggregator (policy shared): length_inflation since step 19, open at step 23 [a3f2c1d0]"
        " of trl.GRPOTrainer",
        "length 15.6, drift from 7.5, baseline 5",
        "evidence 12.34 against 8 needed",
        "This finding stops the run.",
        "Last clean checkpoint: step 15, out/checkpoint-15",
        "1. stop, or roll back",
        "2. cap the answers of aggregator: max_completion_length=<tokens>",
    ]


def test_texts_are_told_only_if_asked_for() -> None:
    assert "boxed" not in body(ALERT, HEADER)
    assert body(ALERT, HEADER, texts=True).splitlines()[-2:] == [
        "step 2: \\boxed{2}",
        "step 23: Well, @everyone <!channel> \\boxed{2}",
    ]


def test_what_is_not_known_is_left_out() -> None:
    bare = replace(ALERT, value=None, evidence=None, chance="", checkpoint=None, stops=False)
    assert strength(bare) == certainty(bare) == ""
    assert certainty(replace(bare, evidence=3.0)) == "evidence 3"
    assert len(body(bare, HEADER).splitlines()) == 4
