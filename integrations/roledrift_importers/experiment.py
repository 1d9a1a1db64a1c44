"""What the names of the paper's launcher and evaluator say about an experiment.

``<workflow>-<model>[-<kind>]-<task>[-<suffix>]``, such as ``voting-qwen3_1.7b-multi_lora-math``. A
model with weights of its own has them in its name (``qwen3_1.7b_s430``). The kind says which
policies there were, or that no training is behind the numbers: ``base_model`` and the two
``single_agent...transfer`` are evaluations.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from roledrift.ingest.form import Facts
from roledrift.records import NOTE_BASE, NOTE_TRANSFER
from roledrift.workflow import Routing

_KINDS = (
    "share_policy",
    "multi_lora",
    "base_model",
    "single_agent_generator_transfer",
    "single_agent_transfer",
)
_NAME = re.compile(
    r"(?P<workflow>[a-z]\w*)-(?P<model>[a-z][\w.]*?_\d+\.?\d*b[^-]*)"
    rf"(?:-(?P<kind>{'|'.join(_KINDS)}))?-(?P<task>[A-Za-z][A-Za-z0-9_]*)(?:-(?P<suffix>.+))?\Z",
    re.IGNORECASE,
)
_WORKFLOWS = {
    "voting": "voting",
    "voting_v2": "voting_v2",
    "evaluator_optimizer": "eval_opt",
    "evaluator_optimizer_v2": "eval_opt_v2",
    "orchestrator_workers": "orch_workers",
    "orchestrator_workers_propose": "orch_workers",
    "single_agent": "single",
    "single": "single",
}
_TASKS = {"deepcoder_primeintellect": "deepcoder", "dapo_math": "math"}
_SETS = {"math": ("dapo_math",), "deepcoder": ("deepcoder_primeintellect", "deepcoder")}
"""By task, the data sets that its own test problems are called."""

_SEED = re.compile(r"(?:^|[-_])(?:seed|s)[-_]?(\d{1,9})\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The parts of a name.

    Attributes:
        name: All of it.
        workflow: Name of the preset, where there is one.
        scale: Size of the model, with the name of its weights if they are its own.
        kind: One of ``share_policy``, ``multi_lora``, ``base_model``, ``single_agent_transfer``,
            ``single_agent_generator_transfer``; empty if the name does not say.
        suffix: What the user added.
    """

    name: str
    workflow: str
    scale: str
    kind: str
    task: str
    suffix: str

    @property
    def cell(self) -> tuple[str, str, str]:
        """What an evaluation of the base model has in common with the trainings from it."""
        return self.workflow, self.scale, self.task

    @property
    def trained(self) -> bool:
        """Whether a training is behind it."""
        return self.kind not in ("base_model", "single_agent_transfer") and not self.transfer

    @property
    def transfer(self) -> str:
        """The roles that an adapter of a single agent acts for; empty if none does."""
        if self.kind == "single_agent_transfer":
            return "all roles"
        if self.kind != "single_agent_generator_transfer":
            return ""
        return "worker" if self.workflow == "orch_workers" else "generator"

    @property
    def routing(self) -> Routing | None:
        """Which policies there were; None if the name does not say."""
        if not self.kind:
            return None
        return "isolated" if self.kind == "multi_lora" else "shared"

    @property
    def seed(self) -> int | None:
        """The seed, if the suffix names one."""
        match = _SEED.search(self.suffix)
        return int(match[1]) if match else None


def parsed(name: str) -> Experiment | None:
    """The parts of an experiment's name; None for any other name."""
    match = _NAME.match(name)
    if match is None or not (match["kind"] or match["workflow"].lower() in _WORKFLOWS):
        return None
    workflow, task = match["workflow"].lower(), match["task"]
    return Experiment(
        name=name,
        workflow=_WORKFLOWS.get(workflow, workflow),
        scale=match["model"].lower().removeprefix("qwen3_"),
        kind=(match["kind"] or "").lower(),
        task=_TASKS.get(task, task),
        suffix=match["suffix"] or "",
    )


def named_after(name: str, facts: Facts) -> bool:
    """Fill in what an experiment's name says, if it is one that the paper's launcher gives.

    Args:
        name: For example ``voting-qwen3_1.7b-multi_lora-math``.
        facts: Where scale, task, workflow and routing go.
    """
    experiment = parsed(name)
    if experiment is None:
        return False
    facts.run, facts.scale, facts.task = name, experiment.scale, experiment.task
    facts.workflow, facts.routing = experiment.workflow, experiment.routing
    facts.seed = experiment.seed if facts.seed is None else facts.seed
    if experiment.kind == "base_model":
        facts.notes[NOTE_BASE] = "evaluated without a training"
    if experiment.transfer:
        facts.notes[NOTE_TRANSFER] = experiment.transfer
    if experiment.suffix:
        facts.notes["suffix"] = experiment.suffix
    return True


def own_set(task: str, name: str) -> bool:
    """Whether a data set is that of the task itself, and not another one it was tried on."""
    return name in _SETS.get(task, (task,))
