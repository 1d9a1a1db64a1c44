from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from roledrift.detect.remedies import go_back
from roledrift.judgement import Alert, Verdict
from roledrift.records import Sample
from roledrift.report.build import build_run
from roledrift.report.html import render_html
from roledrift.report.judged_run import JudgedRun
from roledrift.report.markdown import render_markdown
from roledrift.report.model import Advice, Block, Figure, Pairs, Report
from roledrift.report.sections import first_screen
from roledrift.sums import EVERYONE
from tests.notify.alerts import ALERT
from tests.report.conftest import judged

Kind = TypeVar("Kind", bound=Block)


def shown(run: JudgedRun, kind: type[Kind]) -> Kind:
    (found,) = (one for one in first_screen.build(run).blocks if isinstance(one, kind))
    return found


def absent(run: JudgedRun, kind: type[Kind]) -> bool:
    return not any(isinstance(one, kind) for one in first_screen.build(run).blocks)


def test_the_cause_of_all_roles_stands_above_the_accuracy(failing: JudgedRun) -> None:
    run = judged(failing, ALERT)
    cause, accuracy = shown(run, Figure).panels
    assert [line.label for line in cause.lines] == ["generator", "aggregator"]
    assert cause.title.startswith("Response length")
    assert [(mark.label, mark.mild) for mark in cause.marks] == [
        *(("checkpoint 15", True), ("onset 19", False), ("alert 23", False))
    ]
    assert accuracy.marks == cause.marks
    assert accuracy.span == cause.span
    assert accuracy.margin == cause.margin, "on one axis of steps"
    assert [line.label for line in accuracy.lines] == ["validation"]
    assert accuracy.note == "Best 0.6 at step 0; 0.3 at step 35."


def test_texts_before_and_after_are_those_of_the_accused_role(failing: JudgedRun) -> None:
    run = judged(failing, ALERT)
    (pair,) = shown(run, Pairs).pairs
    assert (pair.left.role, pair.right.role) == ("aggregator", "aggregator")
    assert pair.left.step < 19 <= pair.right.step
    assert pair.left.prompt == pair.right.prompt


def test_texts_that_the_alert_carries_stand_in_for_those_that_are_gone(failing: JudgedRun) -> None:
    run = replace(judged(failing, ALERT), samples=(), live_alerts=(ALERT,))
    (pair,) = shown(run, Pairs).pairs
    assert (pair.left.step, pair.right.step, pair.remark) == (2, 23, "Same prompt.")
    assert absent(replace(judged(failing, replace(ALERT, pairs=())), samples=()), Pairs)


def test_a_finding_of_all_roles_shows_the_texts_of_one(failing: JudgedRun) -> None:
    whole = replace(ALERT, id="w", role=EVERYONE, statistic="val_accuracy")
    alone = judged(failing, whole)
    (panel, other) = shown(alone, Figure).panels
    assert panel.title == "Validation accuracy"
    assert other.title != "Accuracy", "the accuracy is not drawn twice"
    both = judged(failing, whole, replace(ALERT, onset=22, step=25))
    (pair,) = shown(both, Pairs).pairs
    assert pair.left.role == "aggregator"


def test_there_is_one_plan_with_one_way_back(failing: JudgedRun) -> None:
    def told(id_: str, onset: int, role: str) -> Alert:
        advice = (go_back(onset, ALERT.checkpoint), "lower the learning rate")
        return replace(ALERT, id=id_, onset=onset, step=onset + 2, role=role, advice=advice)

    run = judged(failing, told("a", 19, "aggregator"), told("b", 24, "generator"))
    report = Report("r", "0", "c", (), (build_run(run, "c"),))
    for page in (render_html(report), render_markdown(report)):
        assert page.lower().count("roll back") == 1
        assert "the last from before step 19" in page


def test_an_incident_that_has_passed_asks_for_nothing(failing: JudgedRun) -> None:
    over = replace(ALERT, state="closed", level="INFO", step=30)
    assert absent(judged(failing, ALERT, over), Advice)


def test_the_lead_is_the_cause_and_the_beginning_of_the_headline(failing: JudgedRun) -> None:
    sign = replace(ALERT, id="s", finding="truncation", role="generator", onset=21, step=24,
                   title="The generator has been truncated since step 21")  # fmt: skip
    run = judged(failing, ALERT, sign)
    lead = first_screen.lead(run)
    assert lead == f"{ALERT.title}."
    assert run.conclusion.sentence.startswith(f"{lead} {sign.title}.")
    alone = judged(failing, ALERT)
    assert first_screen.lead(alone) == alone.conclusion.sentence


def test_a_healthy_run_shows_its_accuracy_and_lengths(healthy: JudgedRun) -> None:
    clean = judged(healthy, latest=[Verdict("d", "generator", "ok")])
    accuracy, lengths = shown(clean, Figure).panels
    assert accuracy.title == "Accuracy"
    assert accuracy.marks == ()
    assert lengths.title.startswith("Response length")
    assert absent(clean, Advice)
    kept = tuple(Sample(step, "generator", f"text {step}", prompt="p") for step in (2, 9, 30))
    (pair,) = shown(replace(healthy, samples=kept), Pairs).pairs
    assert (pair.left.step, pair.right.step) == (2, 30)


def test_a_run_without_a_verdict_is_told_what_to_record(healthy: JudgedRun) -> None:
    lacks = [Verdict("d", role, "no verdict", needs=("entropy",)) for role in healthy.roles]
    assert shown(judged(healthy, latest=lacks), Advice).items == ("record entropy",)


def test_a_run_without_records_says_so(empty: JudgedRun) -> None:
    kinds = [one.kind for one in first_screen.build(empty).blocks]
    assert "figure" not in kinds
    assert "note" in kinds


def test_a_run_that_was_not_closed_says_so_first(failing: JudgedRun) -> None:
    quiet = replace(failing, header=replace(failing.header, notes={}))
    assert first_screen.notices(quiet) == ()
    (told,) = first_screen.notices(replace(quiet, state="open"))
    assert "crashed, was killed, or is still running" in told
    assert "step 39, written 2026-01-01T00:39:00Z" in told


def test_a_run_that_was_disturbed_on_purpose_says_so(failing: JudgedRun) -> None:
    assert first_screen.notices(failing) == ("This run was disturbed on purpose: length pays.",)


def test_an_imported_log_says_what_that_means(failing: JudgedRun) -> None:
    records = tuple(replace(one, labels={"source": "foreign"}) for one in failing.records)
    told = first_screen.notices(replace(failing, records=records))
    assert told[-1].startswith("Imported from a log")
