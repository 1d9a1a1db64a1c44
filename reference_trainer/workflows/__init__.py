"""Workflows: who is asked what, in which order, and how the answers become one outcome.

A workflow is a generator function over one episode. It yields the asks of a phase and receives the
replies; the player runs many episodes in lockstep, so all asks of one phase share a batch. To add a
workflow, write one module with a ``SCRIPT`` and name it in ``_MODULES``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from reference_trainer.episodes import Play
from reference_trainer.tasks import Problem, Task
from reference_trainer.workflows.prompts import Prompts
from roledrift import Workflow


@dataclass(frozen=True, slots=True)
class Scene:
    """What an episode plays with.

    Attributes:
        task: Grades texts.
        prompts: Prompt texts.
        lenient_selection: What happens when a selecting role leaves out its tag or runs into the
            length limit. False: the episode fails. True: a fallback is taken (a lone digit, else
            the first candidate) without a word, as the paper's code does; then nothing rewards the
            tag and the role may drift away from it.
    """

    task: Task
    prompts: Prompts
    lenient_selection: bool = False


@dataclass(frozen=True, slots=True)
class Script:
    """A workflow's shape and its play.

    Attributes:
        shape: Roles, slots and duties, as the monitor knows them.
        play: Starts one episode.
    """

    shape: Workflow
    play: Callable[[Problem, Scene], Play]


_MODULES = {
    "single": "reference_trainer.workflows.single",
    "voting": "reference_trainer.workflows.voting",
}

NAMES = tuple(_MODULES)


def load_script(name: str) -> Script:
    """The script called ``name``, one of :data:`NAMES`."""
    script = import_module(_MODULES[name]).SCRIPT
    assert isinstance(script, Script)
    return script
