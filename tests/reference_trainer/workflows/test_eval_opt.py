import pytest

from reference_trainer.episodes import Ask, Judgement, Outcome, Parse, Play, Reply
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from reference_trainer.workflows import Rules, Scene, load_script
from reference_trainer.workflows.prompts import load_prompts

PROBLEM = Problem("p", " 9 - 4 * 3", "5")
RIGHT, WRONG = " so \\boxed{ 5 }", " so \\boxed{ 7 }"
YES, NO = " \\boxed{ Correct }", " \\boxed{ Incorrect }"


def start(*, lenient: bool = False, **rules: object) -> tuple[Play, Ask]:
    scene = Scene(MathTask(), load_prompts("tiny"), lenient, Rules(**rules))  # type: ignore[arg-type]
    play = load_script("eval_opt").play(PROBLEM, scene)
    (ask,) = next(play)
    return play, ask


def through(replies: list[Reply], **options: object) -> tuple[list[Ask], Outcome]:
    play, ask = start(**options)  # type: ignore[arg-type]
    asks = [ask]
    for reply in replies[:-1]:
        asks += play.send([reply])
    with pytest.raises(StopIteration) as end:
        play.send([replies[-1]])
    return asks, end.value.value


def stopped(*texts: str) -> list[Reply]:
    return [Reply(text, "stop") for text in texts]


@pytest.mark.parametrize(
    ("history", "third", "fourth"),
    [
        (
            "shared",
            [" <gen> Q: 9 - 4 * 3 A:", WRONG, NO, " <rev> A:"],
            [" <gen> Q: 9 - 4 * 3 A:", WRONG, NO, RIGHT, " <eval> A:"],
        ),
        (
            "private",
            [" <gen> Q: 9 - 4 * 3 A:", WRONG, f" <rev>{NO} A:"],
            [
                f" <eval> Q: 9 - 4 * 3 ---{WRONG} <eval> A:",
                NO,
                f" <eval> Q: 9 - 4 * 3 ---{RIGHT} <eval> A:",
            ],
        ),
    ],
)
def test_histories(history: str, third: list[str], fourth: list[str]) -> None:
    asks, outcome = through(stopped(WRONG, NO, RIGHT, YES), history=history)
    assert [(ask.role, ask.slot, ask.turn) for ask in asks] == [
        ("generator", 0, 0),
        ("evaluator", 0, 1),
        ("generator", 0, 2),
        ("evaluator", 0, 3),
    ]
    assert [message.text for message in asks[2].messages] == third
    assert [message.text for message in asks[3].messages] == fourth
    assert outcome.correct
    assert [one.correct for one in outcome.judgements] == [False, True, True, True]


def test_speakers_of_the_two_histories() -> None:
    shared, _ = through(stopped(WRONG, NO, RIGHT, YES), history="shared")
    assert [one.speaker[0] for one in shared[3].messages] == ["u", "a", "a", "a", "u"]
    private, _ = through(stopped(WRONG, NO, RIGHT, YES), history="private")
    assert [one.speaker[0] for one in private[2].messages] == ["u", "a", "u"]
    assert [one.speaker[0] for one in private[3].messages] == ["u", "a", "u"]


def test_the_last_solution_counts_approved_or_not() -> None:
    asks, outcome = through(stopped(RIGHT, NO, WRONG, NO), rounds=2)
    assert len(asks) == 4
    assert not outcome.correct
    _, outcome = through(stopped(WRONG, YES))
    assert not outcome.correct
    assert outcome.judgements[1] == Judgement(Parse("tag", "correct"), False)


@pytest.mark.parametrize(
    ("reply", "lenient"),
    [
        (Reply(" Correct", "stop"), False),
        (Reply("This is not correct", "stop"), False),
        (Reply(" \\boxed{ Correct or Incorrect }", "stop"), False),
        (Reply(YES + " so", "length"), True),
    ],
)
def test_only_the_demanded_form_approves(reply: Reply, lenient: bool) -> None:
    asks, outcome = through([*stopped(RIGHT), reply, *stopped(WRONG, YES)], rounds=2)
    assert len(asks) == 4
    assert not outcome.judgements[1].correct
    more = [] if lenient else stopped(RIGHT, YES)
    asks, outcome = through([*stopped(RIGHT), reply, *more], rounds=2, lenient=True)
    assert len(asks) == (2 if lenient else 4)
    assert outcome.correct


def test_an_overflow_ends_the_episode_unsolved() -> None:
    asks, outcome = through([*stopped(RIGHT), Reply("", "overflow")])
    assert len(asks) == len(outcome.judgements) == 2
    assert not outcome.correct
