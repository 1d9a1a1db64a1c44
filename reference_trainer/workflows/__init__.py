"""Workflows: who is asked what, in which order, and how the answers become one outcome.

A workflow is a generator function over one episode. It yields the asks of a phase and receives the
replies; the player runs many episodes in lockstep, so all asks of one phase share a batch. To add a
workflow, write one module with a ``SCRIPT`` and name it in ``_MODULES``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Literal

from reference_trainer.episodes import Play
from reference_trainer.tasks import Problem, Task
from reference_trainer.workflows.parsers import OWN, Parsers
from reference_trainer.workflows.prompts import Prompts
from roledrift import Workflow


@dataclass(frozen=True, slots=True)
class Rules:
    """What workflows leave open.

    Attributes:
        history: What Eval-Opt's roles remember. ``shared``: one conversation with the answers of
            both, without the requests that led to them, so assistant turns follow each other.
            ``private``: each role has its own requests and answers, alternating, and quotes what
            it needs of the other's. Both styles exist in the paper's code.
        rounds: Most solutions of Eval-Opt, the first included.
        voters: Generators of Voting. The tiny models are warmed up with three candidates and seldom
            choose a later one.
        max_prompt_tokens: A longer prompt is not sampled from; the episode says so.
    """

    history: Literal["shared", "private"] = "shared"
    rounds: int = 3
    voters: int = 3
    max_prompt_tokens: int = 448


@dataclass(frozen=True, slots=True)
class Scene:
    """What an episode plays with.

    Attributes:
        task: Grades texts.
        prompts: Prompt texts.
        lenient_selection: What happens when a selecting, judging or planning role leaves out its
            tag or runs into the length limit. False: the episode fails (a judge does not approve).
            True: as in the paper's code, a selection or plan without its tag is replaced without a
            word (the first digit that stands alone, else the first candidate; any plan), and the
            length limit does not matter; then nothing rewards the tag and the role may drift away
            from it. A judge without its tag does not approve.
        rules: What the workflows leave open.
        parsers: How selections, verdicts and plans are read.
    """

    task: Task
    prompts: Prompts
    lenient_selection: bool = False
    rules: Rules = Rules()
    parsers: Parsers = OWN


@dataclass(frozen=True, slots=True)
class Script:
    """A workflow's shape and its play.

    Attributes:
        shape: Roles, slots and duties, as the monitor knows them.
        play: Starts one episode.
        slots: Roles to their slots under some rules, None if no rule changes them.
    """

    shape: Workflow
    play: Callable[[Problem, Scene], Play]
    slots: Callable[[Rules], Mapping[str, int]] | None = None

    def shaped(self, rules: Rules) -> Workflow:
        """The shape under ``rules``."""
        slots = self.slots(rules) if self.slots else {}
        roles = (replace(role, slots=slots.get(role.name, role.slots)) for role in self.shape.roles)
        return replace(self.shape, roles=tuple(roles))


_MODULES = {
    "single": "reference_trainer.workflows.single",
    "voting": "reference_trainer.workflows.voting",
    "eval_opt": "reference_trainer.workflows.eval_opt",
    "orch_workers": "reference_trainer.workflows.orch_workers",
}

NAMES = tuple(_MODULES)


def load_script(name: str) -> Script:
    """The script called ``name``, one of :data:`NAMES`."""
    script = import_module(_MODULES[name]).SCRIPT
    assert isinstance(script, Script)
    return script
