import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.ingest.grade import (
    answer_text,
    answers,
    boxed_run,
    duty_of,
    regrade,
    right,
    same,
    selected,
    truth_of,
    verdict,
)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        ("5", "5.0"),
        (" 1,234 ", "1234"),
        ("\\dfrac{1}{2}", "0.5"),
        ("\\frac12", "1/2"),
        ("x = 7", "7"),
        ("$\\text{yes}$", "yes"),
        ("50\\%", "50"),
        ("90^\\circ", "90"),
        ("\\left(1, 2\\right)", "(1,2)"),
    ],
)
def test_equal_answers(answer: str, truth: str) -> None:
    assert same(answer, truth)


@pytest.mark.parametrize(
    ("answer", "truth"), [("5", "6"), ("1/0", "0"), ("a+b=7", "7"), ("12", "1,2")]
)
def test_different_answers(answer: str, truth: str) -> None:
    assert not same(answer, truth)


def test_the_last_box_after_thinking_counts() -> None:
    assert right("\\boxed{4} no, \\boxed{5}", "5")
    assert not right("<think>\\boxed{5}</think> \\boxed{4}", "5")
    assert not right("5", "5")


def test_references() -> None:
    assert truth_of({"final_answer": 5}) == "5"
    assert truth_of({"reward_model": {"ground_truth": "x"}}) == "x"
    assert truth_of('{"ground_truth": "\\\\boxed{3}"}') == "3"
    assert truth_of({"ground_truth": '[{"input": "1", "output": "2"}]'}) is None
    assert truth_of({"ground_truth": "x" * 1000}) is None
    assert (truth_of("no json"), truth_of(None), answer_text(True)) == (None, None, None)


def test_choices_and_verdicts() -> None:
    assert selected("I take \\boxed{ 2 }", 3) == (1, True)
    assert selected("candidate 3 it is", 3) == (2, False)
    assert selected("\\boxed{9} or 12", 3) == (0, False)
    assert (verdict("\\boxed{Correct}"), verdict("\\boxed{ incorrect }"), verdict("ok")) == (
        True,
        False,
        None,
    )
    assert (duty_of("aggregator"), duty_of("someone")) == ("select", "solve")
    assert [answers(role) for role in ("generator", "evaluator", "synthesizer")] == [
        True,
        False,
        True,
    ]


def test_every_role_of_an_episode_is_graded_by_its_duty() -> None:
    outputs = [
        ("generator", "\\boxed{4}"),
        ("generator", "\\boxed{5}"),
        ("aggregator", "\\boxed{2}"),
    ]
    facts = regrade(outputs, "5")
    assert facts == [{"correct": False}, {"correct": True}, {"fallback": False, "correct": True}]
    rounds = [
        ("generator", "\\boxed{4}"),
        ("evaluator", "\\boxed{Incorrect}"),
        ("generator", "\\boxed{5}"),
        ("evaluator", "hm"),
    ]
    assert [one["correct"] for one in regrade(rounds, "5")] == [False, True, True, False]
    plan = [("orchestrator", "x"), ("worker", "\\boxed{5}"), ("synthesizer", "\\boxed{5}")]
    assert regrade(plan, "5") == [{}, {"correct": True}, {"correct": True}]
    assert regrade(plan, None) == [{}, {}, {}]


@given(st.text(max_size=300), st.text(max_size=60))
def test_nothing_raises(text: str, truth: str) -> None:
    right("\\boxed{" + text + "}", truth)
    selected(text, 3)
    verdict(text)
    truth_of(text)


def test_whether_a_run_answers_in_boxes() -> None:
    assert boxed_run([("#### 5", 1.0), ("\\boxed{5}", 0.0)])
    assert boxed_run([("lost", 0.0), (None, None)])  # nothing right yet: boxes may be wanted
    assert not boxed_run([("#### 5", 1.0), ("#### 6", 0.0)])
