import pytest

from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.evaluate import summarise


def span(role: str, problem: int, parse: Parse, *, correct: bool | None, turn: int = 0) -> Span:
    return Span(
        *(problem, 0, role, 0, turn, "p", (1,), (1, 2), (0.0, 0.0), "stop", "", parse, correct),
        reward=1.0,
    )


def test_what_is_said_about_a_role() -> None:
    yes, bare, nothing = (
        Parse("tag", "correct"),
        Parse("fallback", "incorrect"),
        Parse("failed", None),
    )
    episodes = [
        Episode(
            0,
            0,
            True,
            (
                span("judge", 0, yes, correct=True),
                span("judge", 0, bare, correct=False, turn=1),
                span("judge", 0, nothing, correct=False, turn=2),
            ),
        ),
        Episode(1, 0, True, (span("judge", 1, yes, correct=True),)),
    ]
    (name, judge), *rest = summarise(episodes, ["planner", "judge"]).items()
    assert (name, rest) == ("judge", [])
    assert (judge.spans, judge.accuracy, judge.tokens) == (4, 0.5, 2.0)
    assert (judge.tagged, judge.fallback, judge.failed) == (0.5, 0.25, 0.25)
    assert judge.per_episode == 2.0
    assert judge.same == pytest.approx(2 / 3)


def test_a_role_that_says_nothing_readable() -> None:
    episodes = [Episode(0, 0, False, (span("planner", 0, Parse("failed", None), correct=None),))]
    planner = summarise(episodes, ["planner"])["planner"]
    assert (planner.accuracy, planner.same, planner.failed) == (None, None, 1.0)
