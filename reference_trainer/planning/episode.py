"""Who is asked how often in one episode, and what of earlier outputs is in the prompts.

The workflow itself is played, with outputs that are one word each. So a workflow that is added
needs nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from reference_trainer.config import Config
from reference_trainer.episodes import Ask, Reply
from reference_trainer.tasks import Grade, Problem, Split
from reference_trainer.workflows import Rules, Scene, load_script
from reference_trainer.workflows.prompts import load_prompts

_OUTPUT = "quoted"
_PLAN = " ".join(f"STRATEGY {number}: {_OUTPUT}." for number in (1, 2, 3))


@dataclass(frozen=True, slots=True)
class Spans:
    """Outputs of one role.

    Attributes:
        calls: Outputs.
        quoted: Outputs of others and of its own that a prompt holds, on average.
        together: Most outputs that are asked for at the same time.
    """

    calls: int
    quoted: float
    together: int


class _Unsolved:
    """A task whose every answer is wrong: episodes are as long as they get."""

    name = "plan"

    def problem(self, split: Split, index: int) -> Problem:
        return Problem(f"{split}-{index}", "question", "answer")

    def grade(self, problem: Problem, text: str) -> Grade:  # noqa: ARG002 - as every task
        return Grade(False, None)


def spans_per_iteration(config: Config) -> Mapping[str, Spans]:
    """Outputs by role of the longest iteration: no judge approves before the last round."""
    episodes = config.rollout.problems * config.rollout.copies
    played = _played(config.workflow, config.prompts, config.rules)
    return {
        role: Spans(spans.calls * episodes, spans.quoted, spans.together * episodes)
        for role, spans in played.items()
    }


@lru_cache(maxsize=64)
def _played(workflow: str, prompts: str, rules: Rules) -> Mapping[str, Spans]:
    script, task = load_script(workflow), _Unsolved()
    scene = Scene(task, load_prompts(prompts, workflow=workflow), True, rules)
    play = script.play(task.problem("train", 0), scene)
    phases, asks = [], next(play)
    while True:
        phases.append(asks)
        duties = {role.name: role.duty for role in script.shape.roles}
        texts = [_PLAN if duties[ask.role] == "plan" else _OUTPUT for ask in asks]
        try:
            asks = play.send([Reply(text, "stop") for text in texts])
        except StopIteration:
            break
    return {role.name: _spans(role.name, phases) for role in script.shape.roles}


def _spans(role: str, phases: list[list[Ask]]) -> Spans:
    asks = [ask for phase in phases for ask in phase if ask.role == role]
    quoted = sum(message.text.count(_OUTPUT) for ask in asks for message in ask.messages)
    together = max(sum(ask.role == role for ask in phase) for phase in phases)
    return Spans(len(asks), quoted / len(asks), together)
