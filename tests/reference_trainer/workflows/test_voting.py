import pytest

from reference_trainer.episodes import Ask, Outcome, Play, Reply
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.prompts import load_prompts

PROBLEM = Problem("p", " 9 - 4 * 3", "5")
ANSWERS = [" so \\boxed{ 7 }", " so \\boxed{ 5 }", " so"]


def scene(**changes: bool) -> Scene:
    return Scene(MathTask(), load_prompts("tiny"), **changes)


def answer(play: Play, texts: list[str], finish: str = "stop") -> list[Ask] | Outcome:
    try:
        return play.send([Reply(text, finish) for text in texts])  # type: ignore[arg-type]
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


def outcome(choice: str, finish: str = "stop", **changes: bool) -> Outcome:
    play = load_script("voting").play(PROBLEM, scene(**changes))
    next(play)
    answer(play, ANSWERS)
    result = answer(play, [choice], finish)
    assert isinstance(result, Outcome)
    return result


def test_the_asks() -> None:
    play = load_script("voting").play(PROBLEM, scene())
    first = next(play)
    assert [(ask.role, ask.slot, ask.turn) for ask in first] == [
        ("generator", slot, 0) for slot in range(3)
    ]
    assert {ask.messages[0].text for ask in first} == {" <gen> Q: 9 - 4 * 3 A:"}
    (second,) = answer(play, ANSWERS)  # type: ignore[misc]
    assert (second.role, second.slot, second.turn) == ("aggregator", 0, 1)
    assert second.messages[0].text == (
        " <agg> Q: 9 - 4 * 3 --- 1 so \\boxed{ 7 } --- 2 so \\boxed{ 5 } --- 3 so A:"
    )


def test_the_chosen_candidate_decides() -> None:
    good, bad = outcome(" \\boxed{ 2 }"), outcome(" \\boxed{ 1 }")
    assert (good.correct, bad.correct) == (True, False)
    assert [one.correct for one in good.judgements] == [False, True, False, True]
    assert [one.parse.how for one in good.judgements] == ["tag", "tag", "failed", "tag"]


@pytest.mark.parametrize(
    ("choice", "finish", "strict", "lenient"),
    [
        (" \\boxed{ 2 }", "stop", True, True),
        (" the answer is 2", "stop", False, True),
        (" \\boxed{ 2 } so", "length", False, True),
        (" so", "stop", False, False),  # lenient takes candidate 1, which is wrong
    ],
)
def test_strict_and_lenient(choice: str, finish: str, strict: bool, lenient: bool) -> None:
    assert outcome(choice, finish).correct is strict
    assert outcome(choice, finish, lenient_selection=True).correct is lenient
