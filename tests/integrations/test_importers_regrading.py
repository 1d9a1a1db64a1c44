from hypothesis import given
from hypothesis import strategies as st
from roledrift_importers.regrading import regrade, selected, truth_of, verdict


def test_references() -> None:
    assert truth_of({"final_answer": 5}) == "5"
    assert truth_of({"reward_model": {"ground_truth": "x"}}) == "x"
    assert truth_of('{"ground_truth": "\\\\boxed{3}"}') == "3"
    assert truth_of({"ground_truth": '[{"input": "1", "output": "2"}]'}) is None
    assert truth_of({"ground_truth": "x" * 1000}) is None
    assert (truth_of("no json"), truth_of(None)) == (None, None)


def test_choices_and_verdicts() -> None:
    assert selected("I take \\boxed{ 2 }", 3) == (1, True)
    assert selected("candidate 3 it is", 3) == (2, False)
    assert selected("\\boxed{9} or 12", 3) == (0, False)
    assert (verdict("\\boxed{Correct}"), verdict("\\boxed{ incorrect }"), verdict("ok")) == (
        True,
        False,
        None,
    )


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


@given(st.text(max_size=300))
def test_nothing_raises(text: str) -> None:
    selected(text, 3)
    verdict(text)
    truth_of(text)
