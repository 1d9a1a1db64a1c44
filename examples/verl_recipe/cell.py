"""The section ``recipe`` of verl's configuration: the workflow, its texts and how it is graded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.reading import merge
from reference_trainer.tasks import Problem, Task
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.data import CodeRow, Splits
from reference_trainer.tasks.datasets import (
    DapoMathSource,
    DapoMathTask,
    DeepCoderSource,
    DeepCoderTask,
)
from reference_trainer.tasks.released_math import released_verifier
from reference_trainer.tasks.sandbox_settings import SandboxSettings, open_sandbox
from reference_trainer.workflows import Scene, Script, load_script
from reference_trainer.workflows.parsers import OWN, RELEASED
from reference_trainer.workflows.prompts import load_prompts
from verl_recipe.rows import problem_of, unpack_tests

_KEYS = ("workflow", "prompts", "task", "rules", "rollout", "paper_compat", "sandbox")
_PARTS = {
    "rollout": ("lenient_selection",),
    "paper_compat": ("chat", "parsers", "graders"),
}
_ELSEWHERE = {
    "rules.max_prompt_tokens": "data.max_prompt_length",
    "rollout.max_new_tokens": "data.max_response_length",
    "rollout.temperature": "actor_rollout_ref.rollout.temperature",
    "rollout.copies": "actor_rollout_ref.rollout.n",
    "rollout.problems": "data.train_batch_size",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What episodes are played with.

    Attributes:
        config: The recipe in the reference trainer's terms.
        script: The workflow.
        scene: Prompts, parsers and rules, with a task that grades any row but programs.
        released_chat: See :mod:`reference_trainer.rollout.chat`.
    """

    config: Config
    script: Script
    scene: Scene
    released_chat: bool

    def posed(self, row: Mapping[str, Any]) -> tuple[Problem, Task]:
        """The problem of a row, and what grades it.

        Raises:
            SettingsError: If the row lacks a question or an answer.
        """
        problem = problem_of(row)
        task = self.scene.task
        if not isinstance(task, DeepCoderTask):
            return problem, task
        # The question already says what form a program must have.
        code = CodeRow(
            problem.id, problem.question, "", unpack_tests(problem.answer), prepared=True
        )
        return replace(problem, answer=""), replace(task, splits=Splits((code,), (), {}))


def cell_of(config: Any) -> Cell:
    """The cell that verl's configuration names; prepared once per process.

    Args:
        config: verl's configuration, with a section ``recipe``.

    Raises:
        SettingsError: With every mistake in the section, or if this machine keeps programs in less
            well than ``recipe.sandbox.floor`` asks for.
    """
    if not config.trainer.get("use_v1", True):
        raise SettingsError(
            "an episode has several outputs, which only verl's V1 trainer takes: set "
            "trainer.use_v1=true"
        )
    rollout = config.actor_rollout_ref.rollout
    fixed = {
        "model": {"path": str(config.actor_rollout_ref.model.path)},
        "rules": {"max_prompt_tokens": int(rollout.prompt_length)},
        "rollout": {
            "max_new_tokens": int(rollout.response_length),
            "temperature": float(rollout.temperature),
        },
    }
    nodes = max(1, int(config.trainer.get("nnodes", 1)))
    per_node = -(-int(rollout.agent.num_workers) // nodes)
    section = _plain(config.get("recipe", None) or {})
    return _opened(json.dumps([section, fixed]), per_node)


def read_recipe(section: Mapping[str, Any], fixed: Mapping[str, Any]) -> Config:
    """The section as a configuration of the reference trainer.

    Args:
        section: Keys of the reference trainer's files; others are verl's.
        fixed: What verl's own settings say.

    Raises:
        SettingsError: With every mistake found.
    """
    problems = [
        f"recipe.{key} is unknown; there are {list(_KEYS)}" for key in section if key not in _KEYS
    ]
    for name, elsewhere in _ELSEWHERE.items():
        part, key = name.split(".")
        if key in (section.get(part) or {}):
            problems.append(f"recipe.{name} is set by verl's {elsewhere}")
    for part, known in _PARTS.items():
        problems += [
            f"recipe.{part}.{key} does nothing here: verl trains; there are {list(known)}"
            for key in section.get(part) or {}
            if key not in known and f"{part}.{key}" not in _ELSEWHERE
        ]
    if "workflow" not in section:
        problems.append("recipe.workflow is missing")
    if problems:
        raise SettingsError("; ".join(problems))
    return from_mapping(merge({"routing": "shared", **section}, fixed))


@cache
def _opened(text: str, processes: int) -> Cell:
    section, fixed = json.loads(text)
    config = read_recipe(section, fixed)
    prompts = load_prompts(config.prompts, workflow=config.workflow)
    parsers = RELEASED if config.paper_compat.parsers else OWN
    task = _grader(config, processes)
    scene = Scene(task, prompts, config.rollout.lenient_selection, config.rules, parsers)
    return Cell(config, load_script(config.workflow), scene, config.paper_compat.chat)


def _grader(config: Config, processes: int) -> Task:
    """A task without rows of its own; the processes of a node share its cores."""
    released = config.paper_compat.graders
    if isinstance(config.task, DapoMathSource):
        verifier = released_verifier() if released else None
        return DapoMathTask(Splits((), (), {}), verifier, released)
    if isinstance(config.task, DeepCoderSource):
        workers = config.sandbox.workers or max(1, (os.cpu_count() or 1) // processes)
        sandbox = open_sandbox(replace(config.sandbox, workers=workers))
        return DeepCoderTask(Splits((), (), {}), sandbox, config.sandbox.limits, released)
    if isinstance(config.task, CodeTask):  # it grades in the process's own
        open_sandbox(SandboxSettings(floor=config.sandbox.floor))
    return config.task


def _plain(value: Any) -> Any:
    """Sections and lists of OmegaConf as dictionaries and lists."""
    if hasattr(value, "items"):
        return {str(key): _plain(value) for key, value in value.items()}
    if not isinstance(value, str) and hasattr(value, "__iter__"):
        return [_plain(item) for item in value]
    return value
