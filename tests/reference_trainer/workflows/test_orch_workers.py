import pytest

from reference_trainer.episodes import Ask, Outcome, Play, Reply
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.prompts import load_prompts

PROBLEM = Problem("p", " 9 - 4 * 3", "5")
RIGHT, WRONG = " so \\boxed{ 5 }", " so \\boxed{ 7 }"


def start(*, lenient: bool = False) -> Play:
    play = load_script("orch_workers").play(
        PROBLEM, Scene(MathTask(), load_prompts("tiny"), lenient)
    )
    (ask,) = next(play)
    assert (ask.role, ask.slot, ask.turn) == ("orchestrator", 0, 0)
    assert ask.messages[0].text == " <orch> Q: 9 - 4 * 3 A:"
    return play


def send(play: Play, *texts: str, finish: str = "stop") -> list[Ask] | Outcome:
    try:
        return play.send([Reply(text, finish) for text in texts])  # type: ignore[arg-type]
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_one_worker_per_strategy(number: int) -> None:
    play = start()
    words = ["left", "right", "left"][:number]
    plan = "".join(f" STRATEGY {n} : {word}" for n, word in enumerate(words, start=1))
    workers = send(play, plan)
    assert isinstance(workers, list)
    assert [(ask.role, ask.slot, ask.turn) for ask in workers] == [
        ("worker", slot, 1) for slot in range(number)
    ]
    assert [ask.messages[0].text for ask in workers] == [
        f" <work> Q: 9 - 4 * 3 plan: {word} A:" for word in words
    ]
    final = send(play, *[WRONG, RIGHT, WRONG][:number])
    assert isinstance(final, list)
    (ask,) = final
    assert (ask.role, ask.slot, ask.turn) == ("synthesizer", 0, 2)
    assert ask.messages[0].text.startswith(f" <syn> Q: 9 - 4 * 3 --- 1{WRONG}")
    assert ask.messages[0].text.count("---") == number
    outcome = send(play, RIGHT)
    assert isinstance(outcome, Outcome)
    assert outcome.correct
    assert [one.correct for one in outcome.judgements] == [
        None,
        *[False, True, False][:number],
        True,
    ]
    assert outcome.judgements[0].parse.value == str(number)


@pytest.mark.parametrize(
    ("plan", "finish"), [(" left right", "stop"), (" STRATEGY 1 : left", "length")]
)
def test_a_plan_without_its_form_fails_or_is_followed(plan: str, finish: str) -> None:
    outcome = send(start(), plan, finish=finish)
    assert isinstance(outcome, Outcome)
    assert not outcome.correct
    assert len(outcome.judgements) == 1
    workers = send(start(lenient=True), plan, finish=finish)
    assert isinstance(workers, list)
    assert len(workers) == 1


def test_nothing_can_be_followed_in_an_empty_plan() -> None:
    outcome = send(start(lenient=True), "")
    assert isinstance(outcome, Outcome)
    assert outcome.judgements[0].parse.how == "failed"
