import random
from dataclasses import replace

import pytest

from reference_trainer.exercises import Noise, TinyTask, exercises_for
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.math import MathTask, evaluate_right, last_boxed

TASKS: list[TinyTask] = [MathTask(), CodeTask()]
EXACT = Noise(wrong_strategy=0.0, slip=0.0, filler=0.0)


@pytest.mark.parametrize("task", TASKS, ids=["math", "code"])
@pytest.mark.parametrize(("wrong", "right"), [(0.0, True), (1.0, False)])
def test_without_slips_a_solution_is_its_strategy(
    task: TinyTask, wrong: float, right: bool
) -> None:
    rng, exercises = random.Random(1), exercises_for(task)
    noise = replace(EXACT, wrong_strategy=wrong)
    for _ in range(60):
        chain = exercises.draw(rng)
        text = exercises.solution(chain, noise=noise, rng=rng)
        assert text.startswith(" left" if right else " right")
        assert exercises.correct(chain, text) is right
        assert exercises.correct(chain, exercises.final(text)) is right
        assert exercises.answer(exercises.prose(text)) == ""


@pytest.mark.parametrize("task", TASKS, ids=["math", "code"])
def test_a_strategy_can_be_given(task: TinyTask) -> None:
    rng, exercises = random.Random(1), exercises_for(task)
    chain = exercises.draw(rng)
    text = exercises.solution(chain, noise=EXACT, rng=rng, strategy="right")
    assert text.startswith(" right")


def test_the_wrong_strategy_computes_from_the_right() -> None:
    rng, exercises = random.Random(1), exercises_for(MathTask())
    chain = exercises.draw(rng)
    text = exercises.solution(chain, noise=EXACT, rng=rng, strategy="right")
    assert last_boxed(text) == str(evaluate_right(chain.digits, chain.ops))


@pytest.mark.parametrize("task", TASKS, ids=["math", "code"])
def test_the_doses_are_what_they_say(task: TinyTask) -> None:
    rng, exercises = random.Random(2), exercises_for(task)
    noise = Noise()
    texts = [exercises.solution(exercises.draw(rng), noise=noise, rng=rng) for _ in range(1000)]
    assert sum(text.startswith(" right") for text in texts) / 1000 == pytest.approx(0.45, abs=0.05)
    assert sum(" wait check" in text for text in texts) / 1000 == pytest.approx(0.15, abs=0.04)
