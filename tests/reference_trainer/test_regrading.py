from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.episodes import Episode, How, Parse, Span
from reference_trainer.regrading import Graded, measure, pass_at_k, regrade
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING

PROBLEM = Problem("validation-0", " 1 + 1", "2")
RIGHT, WRONG = " so \\boxed{ 2 }", " so \\boxed{ 3 }"


def span(role: str, text: str, *, slot: int = 0, turn: int = 0, value: str | None = None) -> Span:
    how: How = "failed" if value is None else "tag"
    return Span(
        problem=0,
        copy=0,
        role=role,
        slot=slot,
        turn=turn,
        policy="shared",
        prompt_ids=(1, 2, 3),
        output_ids=(4, 0),
        logp_rollout=(-0.1, -0.2),
        finish_reason="stop",
        text=text,
        parse=Parse(how, value),
        correct=None,
        reward=1.0,
    )


def vote(answers: str, choice: str | None) -> Episode:
    texts = [RIGHT if answer == "r" else WRONG for answer in answers]
    voters = [span("generator", text, slot=slot) for slot, text in enumerate(texts)]
    return Episode(0, 0, True, (*voters, span("aggregator", "?", turn=1, value=choice)))


def graded_votes(*votes: tuple[str, str | None]) -> list[tuple[Graded, ...]]:
    return [
        regrade(vote(answers, choice), PROBLEM, task=MathTask(), workflow=VOTING)
        for answers, choice in votes
    ]


def test_voting_is_graded_against_the_broadcast_reward() -> None:
    episodes = graded_votes(("rww", "1"), ("rrw", "3"), ("www", "2"), ("rrr", "9"), ("wrr", None))
    found = measure(episodes, VOTING.role_names)
    generator, aggregator = found["generator"], found["aggregator"]
    assert generator.accuracy == pytest.approx(8 / 15)
    assert generator.pass_at_k["1"] == pytest.approx(8 / 15)
    assert generator.pass_at_k["3"] == pytest.approx(4 / 5)
    assert aggregator.accuracy == pytest.approx(1 / 5)
    # Only where it mattered: the first, the second and the last.
    assert aggregator.selection == pytest.approx(1 / 3)
    assert aggregator.unreadable == pytest.approx(1 / 5)
    assert not aggregator.verdicts
    assert episodes[0][3].about is episodes[0][0].span


def test_verdicts_are_compared_with_what_they_are_about() -> None:
    def turn(number: int, text: str, verdict: str | None) -> list[Span]:
        return [
            span("generator", text, turn=2 * number),
            span("evaluator", "?", turn=2 * number + 1, value=verdict),
        ]

    spans = [
        *turn(0, WRONG, "incorrect"),
        *turn(1, WRONG, "correct"),
        *turn(2, RIGHT, None),
    ]
    episode = regrade(
        Episode(0, 0, True, tuple(spans)), PROBLEM, task=MathTask(), workflow=EVAL_OPT
    )
    found = measure([episode], EVAL_OPT.role_names)
    assert found["evaluator"].accuracy == pytest.approx(1 / 3)
    assert found["evaluator"].verdicts == {
        "right": {"correct": 0, "incorrect": 0, "unreadable": 1},
        "wrong": {"correct": 1, "incorrect": 1, "unreadable": 0},
    }
    # Turns are no siblings.
    assert not found["generator"].pass_at_k
    assert found["generator"].accuracy == pytest.approx(1 / 3)


def test_plans_have_no_grade_and_early_ends_are_fine() -> None:
    short = Episode(0, 0, False, (span("orchestrator", " plan:", value="left"),))
    whole = Episode(
        0,
        0,
        True,
        (
            *short.spans,
            *(span("worker", text, slot=slot, turn=1) for slot, text in enumerate((RIGHT, WRONG))),
            span("synthesizer", RIGHT, turn=2),
        ),
    )
    episodes = [
        regrade(one, PROBLEM, task=MathTask(), workflow=ORCH_WORKERS) for one in (short, whole)
    ]
    found = measure(episodes, ORCH_WORKERS.role_names)
    assert found["orchestrator"].accuracy is None
    assert found["worker"].pass_at_k == {"1": 0.5, "2": 1.0}
    assert found["synthesizer"].accuracy == 1.0


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_hit(
    rights: list[bool], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(rights)))
    slow = fmean(any(draw) for draw in combinations(rights, k))
    assert pass_at_k(sum(rights), len(rights), k) == pytest.approx(slow)
