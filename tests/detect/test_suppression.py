"""A role whose input is faulty is never called fine."""

from __future__ import annotations

from roledrift.detect.catalogue import all_cards
from roledrift.detect.conclusion import conclude
from roledrift.detect.suppression import suppressed
from roledrift.judgement import Verdict
from tests.detect.runs import GENERATOR, Columns, findings, judged


def test_an_input_problem_is_never_clean_and_withholds_what_rests_on_it() -> None:
    run = Columns(seed=3)
    run.role[GENERATOR, "duplicates"][:] = 0.5
    suite, alerts = judged(run.records())
    assert findings(alerts) == {("duplicate_rows", GENERATOR)}
    assert alerts[0].severity == "input problem"
    reasons = [
        one.reason
        for one in suite.verdicts
        if (one.detector, one.role) == ("policy_movement", GENERATOR)
    ]
    assert reasons[0].startswith("withheld because of duplicate_rows")
    assert conclude(suite.verdicts, suite.incidents, run.steps).outcome == "input problem"


def _verdict(detector: str, state: str, finding: str = "", role: str = "a") -> Verdict:
    return Verdict(detector, role, state, finding, reason="x")  # type: ignore[arg-type]


def test_only_what_rests_on_the_fault_is_withheld_and_never_a_finding() -> None:
    fault = _verdict("rollout_engine", "drift", "logprob_mode_mismatch")
    moved = _verdict("policy_movement", "drift", "role_drift")
    calm = [_verdict("policy_movement", state) for state in ("ok", "watch")]
    other = [_verdict("length_inflation", "ok"), _verdict("policy_movement", "ok", role="b")]
    found = suppressed([fault, moved, *calm, *other], all_cards())
    assert found[:2] == [fault, moved]
    assert {one.state for one in found[2:4]} == {"no verdict"}
    assert found[4:] == other


def test_without_a_fault_nothing_changes() -> None:
    calm = [_verdict("policy_movement", "ok"), _verdict("accuracy_cliff", "watch", role="*")]
    assert suppressed(calm, all_cards()) == calm


def test_a_fault_of_all_roles_together_withholds_the_verdicts_of_each() -> None:
    fault = _verdict("training_data", "drift", "truncation", role="*")
    found = suppressed([fault, _verdict("length_inflation", "ok")], all_cards())
    assert found[1].state == "no verdict"
    assert "truncation of all roles" in found[1].reason
