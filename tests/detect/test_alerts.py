from __future__ import annotations

from dataclasses import replace

import pytest

from roledrift.config import Config
from roledrift.detect.alerts import ADVICE, TITLE_LIMIT, AlertBook, closed, title
from roledrift.records import Alert, Checkpoint, State, Verdict, alert_id
from roledrift.workflow import VOTING, Role, Workflow

NAME = "gradient_amplification"


def verdict(state: State, finding: str = "", *, onset: int | None = None) -> Verdict:
    return Verdict(NAME, "generator", state, finding, "update.k3", 0.05, 0.01, 5e-4, onset, "why")


def told(states: list[Verdict], config: Config | None = None) -> list[tuple[int, Alert]]:
    book = AlertBook(VOTING, config or Config())
    seen = [(step, book.see(step, one)) for step, one in enumerate(states)]
    return [(step, alert) for step, alert in seen if alert is not None]


def test_open_escalate_close_are_told_once_each() -> None:
    low, high = verdict("drift", "role_drift", onset=1), verdict("drift", NAME, onset=2)
    transitions = told([low, low, high, low, *[verdict("ok")] * 7])
    assert [(step, a.state, a.level) for step, a in transitions] == [
        (0, "open", "WARN"),
        (2, "escalated", "ERROR"),
        (8, "closed", "INFO"),
    ]
    assert {a.id for _, a in transitions} == {alert_id(NAME, "generator", 1)}
    assert {a.onset for _, a in transitions} == {1}


def test_watch_opens_nothing_and_ends_a_count_of_clean_records() -> None:
    assert told([verdict("watch")] * 20) == []
    ok, watch = verdict("ok"), verdict("watch")
    seen = told([verdict("drift", NAME, onset=0), *[ok] * 4, watch, *[ok] * 4, watch])
    assert [a.state for _, a in seen] == ["open"]


def test_no_verdict_says_nothing() -> None:
    seen = told([verdict("drift", NAME, onset=0), *[verdict("no verdict")] * 20])
    assert [a.state for _, a in seen] == ["open"]


def test_after_closing_a_new_excursion_has_a_new_id() -> None:
    clean = [verdict("ok")] * 5
    first, again = verdict("drift", NAME, onset=0), verdict("drift", NAME, onset=6)
    seen = told([first, *clean, again])
    assert [a.state for _, a in seen] == ["open", "closed", "open"]
    assert seen[0][1].id != seen[2][1].id


def test_only_the_full_finding_of_an_opted_in_detector_stops() -> None:
    config = Config(stop_on=(NAME,))
    low, high = verdict("drift", "role_drift", onset=1), verdict("drift", NAME, onset=1)
    assert [a.stops for _, a in told([low, high], config)] == [False, True]
    assert [a.stops for _, a in told([low, high])] == [False, False]
    assert [a.stops for _, a in told([high, *[verdict("ok")] * 5], config)] == [True, False]


@pytest.mark.parametrize("finding", [*ADVICE, "something_else"])
def test_titles_are_short_and_advice_is_filled_in(finding: str) -> None:
    role = "a_role_with_a_name_that_is_much_longer_than_anyone_would_like_to_read"
    one = Verdict(finding, role, "drift", finding, "s", 15.6, 7.5, 5.0, 19, "numbers")
    assert len(title(one, finding, 19)) < TITLE_LIMIT
    workflow = Workflow("long", (Role(role),), ("p",))
    alert = AlertBook(workflow, Config()).see(23, one)
    assert alert is not None
    assert alert.policy == "p"
    assert "before step 19" in alert.advice[0]
    assert not any("{" in line for line in alert.advice)
    short = title(Verdict(finding, "agg", "drift", finding, "s", 15.6, 7.5, 5.0, 19), finding, 19)
    assert short.startswith("agg: ")
    assert short.endswith("since step 19")


def test_an_alert_names_the_newest_checkpoint_from_before_the_onset() -> None:
    book = AlertBook(VOTING, Config(), host="trl.GRPOTrainer")
    book.note(tuple(Checkpoint(step, f"c-{step}") for step in (2, 4, 6, 8)))
    book.note(())
    low = replace(verdict("drift", "role_drift", onset=6), evidence=9.0, chance="against 8 needed")
    opened = book.see(9, low)
    assert opened is not None
    assert opened.checkpoint == Checkpoint(4, "c-4")
    assert (opened.evidence, opened.chance) == (9.0, "against 8 needed")
    assert opened.advice[0].endswith("trainer.train(resume_from_checkpoint='c-4')")
    worse = book.see(10, verdict("drift", NAME, onset=8))
    assert worse is not None
    assert (worse.onset, worse.checkpoint) == (6, opened.checkpoint), "the onset stays"
    over = closed(worse, 20, "clean")
    assert (over.checkpoint, over.advice) == (None, ())
    assert AlertBook(VOTING, Config()).see(9, low).checkpoint is None
