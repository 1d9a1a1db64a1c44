"""A generator solves, an evaluator judges, the generator revises until it is approved."""

from __future__ import annotations

from dataclasses import dataclass

from reference_trainer.episodes import Ask, Judgement, Message, Outcome, Parse, Play, Reply
from reference_trainer.tasks import Problem
from reference_trainer.workflows import Scene, Script
from reference_trainer.workflows.parse import parse_answer
from reference_trainer.workflows.prompts import Prompts
from roledrift import EVAL_OPT

Conversation = tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """A solution and the verdict on it."""

    solution: str
    verdict: str


def play(problem: Problem, scene: Scene) -> Play:
    """Solutions and verdicts in turn; the outcome is the last solution's, approved or not.

    Only ``Correct`` in the demanded form ends the episode early (lenient: also if the length limit
    cut the text behind it). The last allowed solution is judged too: the verdict changes nothing
    but is a training row. A prompt that is too long ends the episode unsolved.
    """
    rounds: list[Round] = []
    judgements: list[Judgement] = []
    while True:
        messages = solving(problem.question, rounds, scene)
        (reply,) = yield [Ask("generator", 0, 2 * len(rounds), messages)]
        if reply.finish_reason == "overflow":
            return Outcome(False, (*judgements, Judgement(Parse("failed", None), False)))
        messages = judging(problem.question, rounds, reply.text, scene)
        (judged,) = yield [Ask("evaluator", 0, 2 * len(rounds) + 1, messages)]
        # Asked for only now: programs are graded while the evaluator writes.
        grade = scene.task.grade(problem, reply.text)
        judgements.append(Judgement(parse_answer(grade), grade.correct))
        approves = _approves(judged, scene)
        agrees = approves is not None and approves == grade.correct
        judgements.append(Judgement(scene.parsers.verdict(judged.text), agrees))
        rounds.append(Round(reply.text, judged.text))
        if judged.finish_reason == "overflow":
            return Outcome(False, tuple(judgements))
        if approves or len(rounds) == scene.rules.rounds:
            return Outcome(grade.correct, tuple(judgements))


def solving(question: str, rounds: list[Round], scene: Scene) -> Conversation:
    """What the generator sees after ``rounds``."""
    prompts = scene.prompts
    messages = [Message("user", prompts.fill("generator", question=question))]
    if scene.rules.history == "private":
        for past in rounds:
            request = prompts.fill("generator", "revise_private", feedback=past.verdict)
            messages += [Message("assistant", past.solution), Message("user", request)]
    elif rounds:
        messages += _answers(rounds)
        messages.append(Message("user", prompts.fill("generator", "revise_shared")))
    return tuple(messages)


def judging(question: str, rounds: list[Round], solution: str, scene: Scene) -> Conversation:
    """What the evaluator sees when it judges ``solution`` after ``rounds``."""
    prompts = scene.prompts
    if scene.rules.history == "private":
        messages = []
        for past in rounds:
            messages.append(_request(question, past.solution, prompts))
            messages.append(Message("assistant", past.verdict))
        return (*messages, _request(question, solution, prompts))
    return (
        Message("user", prompts.fill("generator", question=question)),
        *_answers(rounds),
        Message("assistant", solution),
        Message("user", prompts.fill("evaluator", "shared")),
    )


def _request(question: str, solution: str, prompts: Prompts) -> Message:
    return Message("user", prompts.fill("evaluator", "private", question=question, text=solution))


def _answers(rounds: list[Round]) -> list[Message]:
    return [Message("assistant", text) for past in rounds for text in (past.solution, past.verdict)]


def _approves(reply: Reply, scene: Scene) -> bool | None:
    """What the verdict says; None if it cannot be told, which is never an approval."""
    parse = scene.parsers.verdict(reply.text)
    complete = reply.finish_reason == "stop" or scene.lenient_selection
    if parse.how != "tag" or not complete:
        return None
    return parse.value == "correct"


SCRIPT = Script(EVAL_OPT, play)
