"""Everything a run can be told, checked in one go."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from reference_trainer.errors import SettingsError
from reference_trainer.grpo import Aggregation, Clip, Grouping, Normalisation
from reference_trainer.interventions import Interventions, disagreements
from reference_trainer.interventions import problems as intervention_problems
from reference_trainer.minibatches import Order
from reference_trainer.model import ModelSettings
from reference_trainer.paper_compat import PaperCompat
from reference_trainer.paper_compat import problems as compat_problems
from reference_trainer.policies import AdamSettings, LoraSettings
from reference_trainer.ranks import ParallelSettings
from reference_trainer.reading import merge, read
from reference_trainer.rollout.rollout_settings import RolloutSettings
from reference_trainer.rollout.rollout_settings import problems as rollout_problems
from reference_trainer.stress import MISSERVING, Stress
from reference_trainer.stress import problems as stress_problems
from reference_trainer.tasks.code import MOST_TESTS, CodeTask
from reference_trainer.tasks.datasets import DapoMathSource, DeepCoderSource
from reference_trainer.tasks.math import MathTask
from reference_trainer.tasks.sandbox_settings import SandboxSettings
from reference_trainer.tasks.sandbox_settings import problems as sandbox_problems
from reference_trainer.warm_up import PretrainSettings
from reference_trainer.warm_up import problems as warm_up_problems
from reference_trainer.workflows import NAMES, Rules, load_script
from roledrift import RoleDriftError, Workflow


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """The optimisation.

    Attributes:
        steps: Iterations.
        minibatch: Size of a mini-batch.
        microbatch: Most rows of one forward. A mini-batch's gradient is the sum over its
            micro-batches, whatever their size: this decides memory and speed. Smaller ones pad less
            (rows are sorted by length for them) but are more calls.
        microbatch_tokens: Most tokens of one forward, padding included; 0 = as many as the rows
            have. A longer row is alone.
        packed: Rows of a forward follow each other in one sequence without padding. Right with any
            attention; it pays with ``model.attention = "flash_attention_2"``, the others compute
            the part between rows too and mask it.
        minibatch_counts: ``episodes`` (every policy gets the same number of optimizer steps) or
            ``spans`` (as in the paper's code: a role with three slots gets three times as many).
        minibatch_order: How rows get into mini-batches.
        epochs: Times that an iteration's rows are used. Ratios stay relative to the weights before
            the first.
        grouping: Which spans are compared by the advantage.
        normalisation: What centred rewards are divided by.
        aggregation: How the losses of tokens become that of a mini-batch.
        old_logps: Denominator of the ratio: as the engine reported them, or computed again by the
            trainer.
        adam: Optimizer.
        clip: Bounds of the ratio.
        left_out: Roles whose rows stay out of the loss. They are measured as all others are. Their
            policy still moves if another role trains it.
        trained_slots: Role to how many of its slots are trained, the first ones; the rows of the
            others stay out of the loss. All slots of roles that are not named.
        updates: Role to the optimizer steps that its policy makes per iteration, whatever
            ``minibatch`` says; roles of one policy need the same.
        own_reward: Roles that are paid for their own answers instead of the episode's outcome.
    """

    steps: int = 40
    minibatch: int = 64
    microbatch: int = 32
    microbatch_tokens: int = 0
    packed: bool = False
    minibatch_counts: Literal["spans", "episodes"] = "episodes"
    minibatch_order: Order = "shuffled"
    epochs: int = 1
    grouping: Grouping = "slot"
    normalisation: Normalisation = "group"
    aggregation: Aggregation = "seq-mean-token-mean"
    old_logps: Literal["rollout", "trainer"] = "rollout"
    adam: AdamSettings = field(default_factory=AdamSettings)
    clip: Clip = field(default_factory=Clip)
    left_out: tuple[str, ...] = ()
    trained_slots: Mapping[str, int] = field(default_factory=dict)
    updates: Mapping[str, int] = field(default_factory=dict)
    own_reward: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """Validation on fixed problems at the rollout temperature.

    Attributes:
        every: Iterations between validations; also before the first and after the last. 0 = never.
        problems: Number of problems, one rollout each.
    """

    every: int = 10
    problems: int = 200


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """What is handed to roledrift.

    Attributes:
        enabled: False trains without a monitor.
        stop_on: Detectors whose alert ends the run.
        rescore_rows: Rows per role that are scored again after the update. Done with and without a
            monitor: the trainer's own trace holds the result too.
        gradients_every: Iterations between measurements of the roles' gradients; 0 = never.
        options: Further settings of the monitor, in roledrift's own words.
    """

    enabled: bool = True
    stop_on: tuple[str, ...] = ()
    rescore_rows: int = 24
    gradients_every: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """What is kept to resume from, and to evaluate later.

    Attributes:
        every: Iterations between checkpoints; also after the last. 0 = never.
        keep: So many of the latest stay, the one that validated best, and what alerts advise to go
            back to; 0 = all.
    """

    every: int = 10
    keep: int = 3


@dataclass(frozen=True, slots=True)
class Config:
    """One training run.

    Attributes:
        name: Shown in progress lines and reports.
        seed: Of the adapters, the problems, the sampling and the mini-batches.
        workflow: Name of a workflow.
        routing: ``shared``, ``isolated``, or a map from every role to a policy.
        prompts: Family of prompt texts, or the ``prompt.json`` of the paper's code.
        rules: What workflows leave open.
        task: The task; its ``name`` says which: ``math`` or ``code``, or with a model of its own
            ``dapo_math`` or ``deepcoder``.
        model: The base model.
        pretrain: How the tiny base model is made that a run without ``model.path`` uses.
        lora: The adapters.
        rollout: Sampling.
        train: Optimisation.
        initial_adapters: Role to a folder with an adapter that the role's policy starts from, e.g.
            the generator of a single-agent run (``<run>/trainer/adapters/<policy>``). Every role of
            that policy must be named. With ``train.steps = 0`` the run only validates: the other
            roles are then the base model.
        interventions: What is changed for single roles.
        paper_compat: What is done as in the code of arXiv 2605.24202.
        validation: Validation.
        checkpoint: Checkpoints.
        stress: What goes wrong on purpose.
        monitor: Monitoring.
        parallel: Several processes.
        sandbox: Where programs run that the model writes.
    """

    name: str = "run"
    seed: int = 0
    workflow: str = "voting"
    routing: str | Mapping[str, str] = "isolated"
    prompts: str = "tiny"
    rules: Rules = field(default_factory=Rules)
    task: MathTask | CodeTask | DapoMathSource | DeepCoderSource = field(default_factory=MathTask)
    model: ModelSettings = field(default_factory=ModelSettings)
    pretrain: PretrainSettings = field(default_factory=PretrainSettings)
    lora: LoraSettings = field(default_factory=LoraSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    train: TrainSettings = field(default_factory=TrainSettings)
    initial_adapters: Mapping[str, str] = field(default_factory=dict)
    interventions: Interventions = field(default_factory=Interventions)
    paper_compat: PaperCompat = field(default_factory=PaperCompat)
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)
    stress: Stress = field(default_factory=Stress)
    monitor: MonitorSettings = field(default_factory=MonitorSettings)
    parallel: ParallelSettings = field(default_factory=ParallelSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)

    @property
    def scale(self) -> str:
        """Name of the base model's size, as reports show it."""
        return Path(self.model.path).name if self.model.path else f"tiny-{self.pretrain.size}"

    def routed(self) -> Workflow:
        """The workflow's shape with this run's routing, and what it trains."""
        routing: Any = self.routing
        shape = load_script(self.workflow).shaped(self.rules).routed(routing)
        roles = [
            replace(role, trained=role.name not in self.train.left_out) for role in shape.roles
        ]
        return replace(shape, roles=tuple(roles))


def from_mapping(values: Mapping[str, Any]) -> Config:
    """A configuration from plain values, e.g. of a TOML file.

    Raises:
        SettingsError: With every problem found, unknown keys with the nearest known one.
    """
    problems: list[str] = []
    config = read(Config, values, path="", problems=problems)
    if not problems:
        problems = _problems(config)
    if problems:
        raise SettingsError("configuration: " + "; ".join(problems))
    return config


def load(source: str | Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """A preset by name or a TOML or JSON file by path, with values laid over it.

    Raises:
        SettingsError: If there is neither a preset nor a file of that name, or a value is wrong.
    """
    path = Path(source)
    preset = resources.files("reference_trainer") / "presets" / f"{source}.toml"
    own = path.suffix in (".toml", ".json") and path.is_file()
    if not own and not preset.is_file():
        raise SettingsError(
            f"{str(source)!r} is neither a TOML or JSON file nor a preset; presets: {presets()}"
        )
    try:
        text = (path if own else preset).read_text("utf-8")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise SettingsError(f"{source} is not valid {path.suffix[1:].upper()}: {error}") from error
    return from_mapping(merge(values, overrides or {}))


def presets() -> list[str]:
    """Names of the presets."""
    folder = resources.files("reference_trainer") / "presets"
    return sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml"))


def _problems(config: Config) -> list[str]:
    """What is wrong although every value has the right type."""
    positive = {
        "pretrain.steps": config.pretrain.steps,
        "lora.rank": config.lora.rank,
        "rules.rounds": config.rules.rounds,
        "rules.voters": config.rules.voters,
        "rules.max_prompt_tokens": config.rules.max_prompt_tokens,
        "parallel.patience": config.parallel.patience,
        "rollout.problems": config.rollout.problems,
        "rollout.copies": config.rollout.copies,
        "rollout.temperature": config.rollout.temperature,
        "rollout.grading_patience": config.rollout.grading_patience,
        "rollout.max_new_tokens": config.rollout.max_new_tokens,
        "train.minibatch": config.train.minibatch,
        "rollout.vllm.gpu_memory": config.rollout.vllm.gpu_memory,
        "rollout.vllm.rows": config.rollout.vllm.rows,
        "train.microbatch": config.train.microbatch,
        "train.adam.lr": config.train.adam.lr,
        "train.epochs": config.train.epochs,
        "paper_compat.padding_ranks": config.paper_compat.padding_ranks,
    }
    problems = [
        f"{name} must be greater than 0, got {value}"
        for name, value in positive.items()
        if value <= 0
    ]
    problems += warm_up_problems(config.pretrain)
    problems += sandbox_problems(config.sandbox)
    problems += _task_problems(config) + rollout_problems(config.rollout)
    lenient = config.rollout.lenient_selection
    problems += compat_problems(config.paper_compat, lenient=lenient, task=config.task.name)
    if config.workflow not in NAMES:
        return [*problems, f"workflow {config.workflow!r} is unknown; there are {list(NAMES)}"]
    try:
        shape = config.routed()
    except RoleDriftError as error:
        return [*problems, f"routing: {error}"]
    problems += stress_problems(config.stress, shape)
    if config.stress.kind == "longer_problems" and config.task.name not in ("math", "code"):
        problems.append("stress.kind longer_problems needs task math or code")
    if config.stress.kind in MISSERVING and config.rollout.engine != "transformers":
        problems.append(f"stress.kind {config.stress.kind} needs rollout.engine transformers")
    if min(config.checkpoint.every, config.checkpoint.keep) < 0:
        problems.append("checkpoint.every and checkpoint.keep must be 0 or more")
    problems += intervention_problems(config.interventions, shape)
    problems += _problems_of_rows(config.train, shape)
    problems += _problems_of_initial_adapters(config.initial_adapters, shape)
    if not 0.0 <= config.train.adam.floor <= 1.0:
        problems.append(f"train.adam.floor must be between 0 and 1, got {config.train.adam.floor}")
    return problems


def _task_problems(config: Config) -> list[str]:
    task = config.task
    if not isinstance(task, MathTask | CodeTask):
        known = "the tiny base model knows no English: set model.path"
        return [] if config.model.path else [f"task.name {task.name!r}: {known}"]
    problems = []
    legal = set(task.operators) <= set("+-*")
    if not 1 <= task.min_ops <= task.max_ops or not legal:
        problems.append("task needs 1 <= min_ops <= max_ops and operators from '+-*'")
    if task.max_ops < 2:
        problems.append("task.max_ops must be at least 2: one operator has only one order")
    if task.name == "code":
        if not 1 <= task.tests <= MOST_TESTS:
            problems.append(f"task.tests must be between 1 and {MOST_TESTS}, got {task.tests}")
        # Additions commute: without a product next to a sum no order is wrong.
        if legal and not ("*" in task.operators and set(task.operators) & set("+-")):
            problems.append("task.operators needs '*' and one of '+-' for code")
    return problems


def _problems_of_rows(train: TrainSettings, shape: Workflow) -> list[str]:
    """What is wrong with the settings that name roles whose rows are trained differently."""
    known = list(shape.role_names)
    named = {
        "left_out": train.left_out,
        "trained_slots": tuple(train.trained_slots),
        "updates": tuple(train.updates),
        "own_reward": train.own_reward,
    }
    problems = [
        f"train.{name} {unknown} are not roles; there are {known}"
        for name, roles in named.items()
        if (unknown := sorted(set(roles) - set(known)))
    ]
    if set(known) <= set(train.left_out):
        problems.append("train.left_out names every role: nothing would be trained")
    for name, counts in (("trained_slots", train.trained_slots), ("updates", train.updates)):
        problems += [
            f"train.{name}.{role} must be at least 1, got {count}"
            for role, count in counts.items()
            if count < 1
        ]
    return problems + disagreements("train.updates", train.updates, shape, default=0)


def _problems_of_initial_adapters(adapters: Mapping[str, str], shape: Workflow) -> list[str]:
    problems = [
        f"initial_adapters names {role!r}, which is not a role; there are {list(shape.role_names)}"
        for role in adapters
        if role not in shape.role_names
    ]
    for role, policy in zip(shape.role_names, shape.policies, strict=True):
        shared = [other for other in shape.role_names if shape.policy_of(other) == policy]
        if role in adapters and len({adapters.get(other) for other in shared}) > 1:
            problems.append(
                f"initial_adapters: roles {shared} share policy {policy!r}; name the same folder "
                "for all of them, or route them to policies of their own"
            )
    return problems
