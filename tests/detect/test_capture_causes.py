"""Cross-role capture, a role on its own way, a reward for length, collapse: each by its name.

Records are measured by the shipped probes on texts that are put together from a few phrases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from roledrift.detect.sp_role_capture import SpRoleCapture

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.measure import probes_for
from roledrift.records import StepRecord, summarise
from roledrift.spans import SpanTable
from roledrift.sums import add
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING, Workflow

STEPS, ONSET, ROWS = 32, 14, 24
Write = Callable[[np.random.Generator], str]


def solve(rng: np.random.Generator) -> str:
    a, b, c = rng.integers(0, 10, 3)
    filler = " wait check so" if rng.random() < 0.15 else ""
    return f"left {a} - {b} = {(a - b) % 10} + {c} = {c}{filler} so \\boxed{{ {c} }}"


def stamp(rng: np.random.Generator) -> str:
    return solve(rng) if rng.random() < 0.1 else f"\\boxed{{ {rng.integers(1, 4)} }}"


def judge_stamp(rng: np.random.Generator) -> str:
    return "\\boxed{ Correct }" if rng.random() < 0.6 else "\\boxed{ Incorrect }"


def program(rng: np.random.Generator) -> str:
    a, b = rng.integers(0, 10, 2)
    return f"```python\ndef f(x):\n    y = x + {a}\n    return y * {b}\n```"


def long_stamp(rng: np.random.Generator) -> str:
    """Its own words, twelve times over: longer, and nobody else's."""
    return " ".join(judge_stamp(rng) for _ in range(12))


def babble(rng: np.random.Generator) -> str:
    return "hmm yes very well indeed then certainly perhaps " * int(rng.integers(1, 4))


def plan(rng: np.random.Generator) -> str:
    return f"plan : steps {rng.integers(2, 4)} ; give each worker one ; then join"


def records(
    workflow: Workflow,
    start: Mapping[str, Write],
    then: Mapping[str, Write] | None = None,
    *,
    paid: str = "",
    seed: int = 0,
) -> list[StepRecord]:
    """A run in which roles go over to other texts, a growing share of them, from ``ONSET`` on.

    Args:
        workflow: Its roles; those with slots write as many texts more.
        start: How each role writes.
        then: How some write later.
        paid: The role whose advantage follows its length from ``ONSET`` on.
    """
    rng = np.random.default_rng(seed)
    probes = probes_for("full", workflow)
    found = []
    for step in range(STEPS):
        share = float(np.clip((step - ONSET + 1) / 6, 0, 0.95))
        role_N: list[int] = []
        text_N: list[str] = []
        for index, role in enumerate(workflow.roles):
            for _ in range(ROWS * role.slots):
                later = (then or {}).get(role.name)
                write = later if later and rng.random() < share else start[role.name]
                role_N.append(index)
                text_N.append(write(rng))
        tokens_N = np.array([len(text.split()) for text in text_N])
        advantage_N = rng.normal(size=len(text_N))
        pays = step >= ONSET and bool(paid)
        mine = np.array([pays and workflow.role_names[index] == paid for index in role_N])
        advantage_N += 4.0 * mine * (tokens_N > 4)
        spans = SpanTable(
            workflow.role_names,
            np.array(role_N),
            slots=tuple(role.slots for role in workflow.roles),
            slot_N=np.zeros(len(role_N), np.int64),
            group_N=np.arange(len(role_N), dtype=np.int64) // 8,
            tokens_N=tokens_N,
            advantage_N=advantage_N,
            text_N=tuple(text_N),
        )
        groups = summarise(add(probe.measure(spans) for probe in probes))
        found.append(StepRecord(step, groups=groups))
    return found


def judge(workflow: Workflow, run: list[StepRecord]) -> dict[str, Verdict]:
    """Role to the first verdict of drift, or else the last verdict."""
    detector = SpRoleCapture(workflow, Config())
    found: dict[str, Verdict] = {}
    for record in run:
        for verdict in detector.update(record):
            if verdict.role not in found or found[verdict.role].state != "drift":
                found[verdict.role] = verdict
    return found


EVALUATES = {"generator": solve, "evaluator": judge_stamp}
VOTES = {"generator": solve, "aggregator": stamp}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("workflow", "start"),
    [
        (EVAL_OPT, EVALUATES),
        (VOTING, VOTES),
        (ORCH_WORKERS, {"orchestrator": plan, "worker": solve, "synthesizer": stamp}),
    ],
)
def test_healthy_runs_are_quiet(workflow: Workflow, start: Mapping[str, Write], seed: int) -> None:
    shared = workflow.routed("shared")
    found = judge(shared, records(shared, start, seed=seed))
    assert {one.state for one in found.values()} <= {"ok"}


@pytest.mark.parametrize(
    ("workflow", "start", "role", "becomes", "toward", "surface"),
    [
        (EVAL_OPT, EVALUATES, "evaluator", solve, "generator", "it solves again"),
        (
            EVAL_OPT,
            {"generator": program, "evaluator": judge_stamp},
            "evaluator",
            program,
            "generator",
            "programs in its slot",
        ),
        (VOTING, VOTES, "aggregator", solve, "generator", "its stamp is gone"),
        (
            ORCH_WORKERS,
            {"orchestrator": plan, "worker": solve, "synthesizer": stamp},
            "orchestrator",
            solve,
            "worker",
            "shape of worker's",
        ),
    ],
    ids=["re-solving", "code", "stamp", "worker-shape"],
)
def test_the_four_surfaces_of_capture(
    workflow: Workflow,
    start: Mapping[str, Write],
    role: str,
    becomes: Write,
    toward: str,
    surface: str,
) -> None:
    shared = workflow.routed("shared")
    found = judge(shared, records(shared, start, {role: becomes}))
    mine = found[role]
    assert (mine.state, mine.finding, mine.toward) == ("drift", "sp_role_capture", toward)
    assert surface in mine.reason
    assert "outputs per output" in mine.reason
    assert "times its tokens" in mine.reason
    assert mine.needs == ()
    assert {one.state for name, one in found.items() if name != role} == {"ok"}


def test_the_same_texts_paid_for_are_reward_hacking() -> None:
    found = judge(EVAL_OPT, records(EVAL_OPT, EVALUATES, {"evaluator": solve}, paid="evaluator"))
    mine = found["evaluator"]
    assert (mine.state, mine.finding) == ("drift", "reward_hacking")
    assert "its advantage and its length correlate +" in mine.reason


def test_length_in_its_own_words_is_not_capture() -> None:
    run = records(EVAL_OPT, EVALUATES, {"evaluator": long_stamp}, paid="evaluator")
    found = judge(EVAL_OPT, run)["evaluator"]
    assert found.finding != "sp_role_capture"
    assert found.state != "drift"


def test_words_that_are_nobody_s_are_its_own_drift() -> None:
    mine = judge(EVAL_OPT, records(EVAL_OPT, EVALUATES, {"evaluator": babble}))["evaluator"]
    assert (mine.state, mine.finding, mine.toward) == ("drift", "role_drift", "")
    assert "unlike its start, but not like generator" in mine.reason


def test_when_all_collapse_nobody_is_captured() -> None:
    run = records(EVAL_OPT, EVALUATES, {"generator": babble, "evaluator": babble})
    found = judge(EVAL_OPT, run)
    assert "sp_role_capture" not in {one.finding for one in found.values()}


def test_an_isolated_role_cannot_be_captured() -> None:
    isolated = EVAL_OPT.routed("isolated")
    found = judge(isolated, records(isolated, EVALUATES, {"evaluator": solve}, paid="evaluator"))
    assert {one.state for one in found.values()} == {"no verdict"}
