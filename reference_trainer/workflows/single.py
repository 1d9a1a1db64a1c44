"""One generator, one answer: the control without slots and without sharing."""

from __future__ import annotations

from reference_trainer.episodes import Ask, Judgement, Message, Outcome, Play
from reference_trainer.tasks import Problem
from reference_trainer.workflows import Scene, Script
from reference_trainer.workflows.parse import parse_answer
from roledrift import SINGLE


def play(problem: Problem, scene: Scene) -> Play:
    """Ask the generator once and grade its answer."""
    prompt = scene.prompts.fill("generator", question=problem.question)
    (reply,) = yield [Ask("generator", 0, 0, (Message("user", prompt),))]
    grade = scene.task.grade(problem, reply.text)
    return Outcome(grade.correct, (Judgement(parse_answer(grade), grade.correct),))


SCRIPT = Script(SINGLE, play)
