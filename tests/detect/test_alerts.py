"""When a finding opens, escalates and closes, what its title says, and what rests on bad input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.alerts import TITLE_LIMIT, AlertManager, closed, title
from roledrift.detect.cards import Catalogue, Finding
from roledrift.detect.catalogue import shipped
from roledrift.detect.suppression import SPOILS, suppressed
from roledrift.judgement import Alert, Severity, State, Verdict, alert_id
from roledrift.records import Checkpoint
from roledrift.workflow import VOTING, Role, Workflow

NAME = "policy_movement"
CATALOGUE = Catalogue(shipped())
FINDINGS = [one for card in shipped() for one in card.findings]


def _verdict(
    state: State, severity: Severity | None = None, onset: int | None = None, **other: object
) -> Verdict:
    finding = "role_drift" if state == "drift" else ""
    one = Verdict(NAME, "generator", state, finding, "x", 0.05, None, 0.01, onset, reason="why")
    return replace(one, severity=severity, **other)  # type: ignore[arg-type]


def _told(verdicts: Sequence[Verdict], config: Config | None = None) -> list[tuple[int, Alert]]:
    manager = AlertManager(VOTING, config or Config(), CATALOGUE)
    seen = [(step, manager.observe(step, one)) for step, one in enumerate(verdicts)]
    return [(step, alert) for step, alert in seen if alert is not None]


def test_open_escalate_close_are_sent_once_each() -> None:
    low, high = _verdict("drift", "suspicious", 1), _verdict("drift", "failing", 2)
    sent = _told([low, low, high, low, high, *[_verdict("ok")] * 7])
    assert [(step, a.state, a.level) for step, a in sent] == [
        (0, "open", "WARN"), (2, "escalated", "ERROR"), (9, "closed", "INFO")
    ]  # fmt: skip
    assert {a.id for _, a in sent} == {alert_id(NAME, "generator", 1)}
    assert {a.onset for _, a in sent} == {1}


def test_watch_opens_nothing_and_ends_a_count_of_clean_records() -> None:
    assert _told([_verdict("watch")] * 20) == []
    ok, watch = _verdict("ok"), _verdict("watch")
    sent = _told([_verdict("drift", onset=0), *[ok] * 4, watch, *[ok] * 4, watch])
    assert [a.state for _, a in sent] == ["open"]


def test_no_verdict_says_nothing() -> None:
    nothing = no_verdict(NAME, "generator", "why")
    assert _told([nothing]) == []
    assert [a.state for _, a in _told([_verdict("drift"), *[nothing] * 20])] == ["open"]
    assert waiting("d", "generator", "a", "b").reason == "needs a and b"
    assert waiting("d", "generator", "a", "b").needs == ("a", "b")
    assert not no_verdict("d", "generator", "does not apply: one role").applies


def test_after_closing_a_new_excursion_has_a_new_id() -> None:
    sent = _told([_verdict("drift", onset=0), *[_verdict("ok")] * 5, _verdict("drift", onset=6)])
    assert [a.state for _, a in sent] == ["open", "closed", "open"]
    assert sent[0][1].id != sent[2][1].id


def test_findings_and_severities_stop_a_run() -> None:
    low, high = _verdict("drift", "suspicious"), _verdict("drift", "failing")
    asked = {
        ("role_drift",): [True, True],
        ("failing",): [False, True],
        ("policy_drift",): [False, False],
    }
    for stop_on, stops in asked.items():
        assert [a.stops for _, a in _told([low, high], Config(stop_on=stop_on))] == stops


def test_only_failing_findings_advise_to_go_back() -> None:
    (_, mild), (_, bad) = _told(
        [_verdict("drift", "suspicious", 7), _verdict("drift", "failing", 7)]
    )
    assert "before step 7" in bad.advice[0]
    assert bad.advice[1:] == mild.advice
    assert not any("roll back" in one for one in mild.advice)


def test_the_newest_checkpoint_from_before_the_onset_is_named() -> None:
    manager = AlertManager(VOTING, Config(), CATALOGUE, host="trl.GRPOTrainer")
    manager.note(tuple(Checkpoint(step, f"c-{step}") for step in (2, 4, 6, 8)))
    manager.note(())
    opened = manager.observe(9, _verdict("drift", "failing", 6, evidence=9.0, chance="of 8"))
    assert opened is not None
    assert opened.checkpoint == Checkpoint(4, "c-4")
    assert (opened.evidence, opened.chance, opened.layer) == (9.0, "of 8", "movement")
    assert opened.advice[0].endswith("trainer.train(resume_from_checkpoint='c-4')")
    over = closed(opened, 20, "clean")
    assert (over.checkpoint, over.advice, over.stops) == (None, (), False)
    assert over.title == "role_drift of the generator has passed"


ROLES = ("generator", "*", "a_role_with_a_name_that_is_much_longer_than_anyone_would_like_to_read")


NUMBERS = ((15.6, 5.0), (None, None), (1e30, 1e-30), (float("nan"), 0.0))


@pytest.mark.parametrize("role", ROLES)
def test_titles_are_sentences_and_short(role: str) -> None:
    for finding, (value, base) in product(FINDINGS, NUMBERS):
        one = Verdict("d", role, "drift", finding.name, value=value, baseline=base, onset=19)
        told = title(one, finding, 19)
        assert 0 < len(told) < TITLE_LIMIT
        assert "{" not in told
        assert not told.endswith("."), told
        assert told[0].isupper()
        if role == "generator":
            assert "19" in told
            assert (
                "generator" in told
                or finding.name in ("batch_changed", "temperature_changed")
                or (finding.layer in ("outcome", "input", "movement"))
            )


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda one: one.name)
def test_advice_is_filled_in(finding: Finding) -> None:
    detector = CATALOGUE.detectors[finding.name]
    workflow = Workflow("odd", (Role("a.b-c"),), ("p",))
    manager = AlertManager(workflow, Config(), CATALOGUE, host="reference_trainer")
    for role in ("a.b-c", "*"):
        alert = manager.observe(
            5, Verdict(detector, role, "drift", finding.name, onset=3, reason="x")
        )
        assert alert is not None
        assert alert.advice
        assert not any("{role}" in one or "{{" in one for one in alert.advice)
        assert alert.policy == ("p" if role != "*" else "")
        assert alert.severity == finding.severity


def test_an_unknown_finding_is_told_too() -> None:
    alert = AlertManager(VOTING, Config(), CATALOGUE).observe(
        5, Verdict("d", "generator", "drift", "odd", onset=3)
    )
    assert alert is not None
    assert alert.title == "The generator has drifted since step 3"


def _input(finding: str, role: str = "generator") -> Verdict:
    return Verdict(CATALOGUE.detectors[finding], role, "drift", finding, reason="so it is")


def _ok(detector: str, role: str = "generator", state: State = "ok") -> Verdict:
    return Verdict(detector, role, state)


@pytest.mark.parametrize(
    ("finding", "detector", "withheld"),
    [
        ("duplicate_rows", "length_inflation", True),
        ("duplicate_rows", "policy_movement", True),
        ("engine_mismatch", "policy_movement", True),
        ("engine_mismatch", "length_inflation", False),
        ("truncation", "length_inflation", True),
        ("truncation", "policy_movement", False),
        ("signal_loss", "policy_movement", False),
    ],
)
def test_what_rests_on_a_spoilt_input_is_withheld(
    finding: str, detector: str, withheld: bool
) -> None:
    for state in ("ok", "watch"):
        judged = suppressed([_input(finding), _ok(detector, state=state)], CATALOGUE)  # type: ignore[arg-type]
        assert judged[1].state == ("no verdict" if withheld else state)
        if withheld:
            assert judged[1].reason == f"withheld because of {finding} of generator: so it is"


def test_a_drift_and_other_roles_stay() -> None:
    kept = [_ok("policy_movement", "aggregator"), _ok("policy_movement", state="drift")]
    assert suppressed([_input("duplicate_rows"), *kept], CATALOGUE)[1:] == kept
    assert suppressed(kept, CATALOGUE) == kept
    everyone = suppressed([_input("duplicate_rows"), _ok("policy_movement", "*")], CATALOGUE)
    assert everyone[1].state == "no verdict"


def test_findings_that_spoil_are_findings() -> None:
    known = {one.name for one in FINDINGS}
    assert set(SPOILS) <= known
