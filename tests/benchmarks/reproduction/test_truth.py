from typing import Any

import pytest

from benchmarks.reproduction.truth import least_form_kept, told_of_captures, told_of_falls
from tests.benchmarks.reproduction.rows import row, terse


def told(outcome: str, *findings: tuple[str, str, int]) -> dict[str, Any]:
    incidents = [
        {"role": role, "finding": finding, "severity": outcome, "consequences": []}
        for role, finding, _ in findings
    ]
    alerts = [[role, finding, step - 2, step, outcome] for role, finding, step in findings]
    return {"outcome": outcome, "sentence": "", "incidents": incidents, "alerts": alerts}


def test_captures_are_told_of_the_runs_in_which_they_happened() -> None:
    named = told("suspicious", ("aggregator", "sp_role_capture", 12))
    lost, kept = [0.9] * 8 + [0.1] * 12, [0.9] * 20
    rows = [
        row("capture/sp", seed=1, roles=terse(lost), told=named),
        row("capture/sp", seed=2, roles=terse(lost), told=told("clean")),
        row("capture/ip", seed=1, roles=terse(kept), told=told("failing", ("*", "reward_drop", 9))),
        row("capture/sp", seed=3, roles=terse(kept), policies={"shared": {}}),
        row("steps/slots3-steps3", seed=1, roles=terse(lost), told=named),
    ]
    lasting, passing, shared, none = told_of_captures(rows)
    assert (lasting.runs, lasting.named.hits, lasting.any.hits, lasting.failing.hits) == (
        2,
        1,
        1,
        0,
    )
    assert lasting.delay == 12 - 9
    assert passing.runs == 0
    assert (shared.runs, shared.named.hits, shared.any.hits) == (1, 0, 0)
    assert (none.runs, none.named.hits, none.failing.hits, none.any.hits) == (1, 0, 1, 1)


def test_how_near_runs_came_to_a_capture() -> None:
    near, kept = [0.8] * 8 + [0.5] * 3 + [0.7] * 9, [0.8] * 20
    shared = {"shared": dict[str, Any]()}
    named = told("suspicious", ("aggregator", "sp_role_capture", 12))
    rows = [
        row("capture/sp", seed=1, roles=terse(near), policies=shared, told=named),
        row("capture/sp", seed=2, roles=terse(kept), policies=shared),
        row("capture/sp", seed=3, roles=terse([0.8] * 5 + [0.1] * 15), policies=shared, told=named),
        row("capture/ip", seed=1, roles=terse(near), told=named),
    ]
    assert least_form_kept(rows, named=True) == pytest.approx([0.5 / 0.8])
    assert least_form_kept(rows, named=False) == pytest.approx([1.0])


def test_falls_are_told_of_the_runs_that_fell() -> None:
    fell = row("steps/a", accuracy=[0.9] * 12 + [0.2] * 12, told=told("failing", ("*", "x", 15)))
    rose = row("steps/a", accuracy=[0.2] * 12 + [0.9] * 12)
    yes, no = told_of_falls([fell, rose, row("transfer/voting")])
    assert (yes.runs, yes.named.hits) == (1, 1)
    assert (no.runs, no.named.hits) == (1, 0)
