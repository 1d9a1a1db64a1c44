r"""Generators answer the same problem; an aggregator boxes the number of one."""

from __future__ import annotations

from reference_trainer.episodes import Ask, Judgement, Message, Outcome, Play
from reference_trainer.tasks import Problem
from reference_trainer.workflows import Rules, Scene, Script
from reference_trainer.workflows.parse import parse_answer
from roledrift import VOTING


def play(problem: Problem, scene: Scene) -> Play:
    """Generators in parallel, then the aggregator; the outcome is the chosen candidate's."""
    prompts = scene.prompts
    question = prompts.fill("generator", question=problem.question)
    replies = yield [
        Ask("generator", slot, 0, (Message("user", question),))
        for slot in range(scene.rules.voters)
    ]
    candidates = "".join(
        prompts.fill("aggregator", "candidate", number=str(number), text=reply.text)
        for number, reply in enumerate(replies, start=1)
    )
    request = prompts.fill("aggregator", question=problem.question, candidates=candidates)
    (choice,) = yield [Ask("aggregator", 0, 1, (Message("user", request),))]
    grades = [scene.task.grade(problem, reply.text) for reply in replies]
    parse = scene.parsers.selection(choice.text, candidates=scene.rules.voters)
    if scene.lenient_selection:
        chosen = int(parse.value or 1)
    else:
        chosen = (
            int(parse.value or 0) if parse.how == "tag" and choice.finish_reason == "stop" else 0
        )
    correct = chosen > 0 and grades[chosen - 1].correct
    solved = tuple(Judgement(parse_answer(grade), grade.correct) for grade in grades)
    return Outcome(correct, (*solved, Judgement(parse, correct)))


def slots(rules: Rules) -> dict[str, int]:
    """As many generators as the rules say."""
    return {"generator": rules.voters}


SCRIPT = Script(VOTING, play, slots)
