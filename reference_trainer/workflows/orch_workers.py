"""An orchestrator proposes strategies, a worker follows each, a synthesizer writes the answer."""

from __future__ import annotations

from reference_trainer.episodes import Ask, Judgement, Message, Outcome, Play
from reference_trainer.tasks import Problem
from reference_trainer.workflows import Scene, Script
from reference_trainer.workflows.parse import parse_answer
from roledrift import ORCH_WORKERS

_MOST = ORCH_WORKERS.role("worker").slots


def play(problem: Problem, scene: Scene) -> Play:
    """One plan, one worker per strategy (1 to 3) in parallel, one final answer.

    Without a plan in the demanded form the episode ends there, unsolved (lenient: a fallback is
    followed instead, as the paper's code does). The synthesizer sees the workers' texts and their
    strategies, not the plan itself.
    """
    prompts = scene.prompts
    request = prompts.fill("orchestrator", question=problem.question)
    (plan,) = yield [Ask("orchestrator", 0, 0, (Message("user", request),))]
    parse, strategies = scene.parsers.strategies(plan.text, most=_MOST)
    planned = Judgement(parse, None)
    usable = parse.how == "tag" and plan.finish_reason == "stop"
    if not strategies or not (usable or scene.lenient_selection):
        return Outcome(False, (planned,))
    requests = [
        prompts.fill("worker", question=problem.question, strategy=strategy)
        for strategy in strategies
    ]
    replies = yield [
        Ask("worker", slot, 1, (Message("user", text),)) for slot, text in enumerate(requests)
    ]
    candidates = "".join(
        prompts.fill(
            "synthesizer", "candidate", number=str(number), text=reply.text, strategy=strategy
        )
        for number, (reply, strategy) in enumerate(zip(replies, strategies, strict=True), start=1)
    )
    request = prompts.fill("synthesizer", question=problem.question, candidates=candidates)
    (answer,) = yield [Ask("synthesizer", 0, 2, (Message("user", request),))]
    grades = [scene.task.grade(problem, reply.text) for reply in replies]
    final = scene.task.grade(problem, answer.text)
    solved = tuple(Judgement(parse_answer(grade), grade.correct) for grade in (*grades, final))
    return Outcome(final.correct, (planned, *solved))


SCRIPT = Script(ORCH_WORKERS, play)
