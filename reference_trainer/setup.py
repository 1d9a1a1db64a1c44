"""From a configuration to a run that is ready to start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reference_trainer.adapter_check import TOLERANCES, AdapterCheck
from reference_trainer.config import Config
from reference_trainer.errors import AdapterError, SettingsError
from reference_trainer.interventions import per_policy
from reference_trainer.model import end_ids, load_model
from reference_trainer.policies import AdapterBank
from reference_trainer.pretrain import base_folder
from reference_trainer.ranks import ALONE, Ranks, first_rank_first
from reference_trainer.rollout.chat import encode, refuse_other_chats
from reference_trainer.rollout.engine import Engine, Sampling
from reference_trainer.rollout.misserving import MisservingEngine
from reference_trainer.rollout.player import Stage
from reference_trainer.rollout.transformers_engine import TransformersEngine
from reference_trainer.rollout.vllm_engine import Served, VllmEngine
from reference_trainer.stress import MISSERVING
from reference_trainer.tasks import Task
from reference_trainer.tasks.code import CodeTask
from reference_trainer.tasks.datasets import (
    DapoMathSource,
    DapoMathTask,
    DeepCoderSource,
    DeepCoderTask,
)
from reference_trainer.tasks.protection import Protection
from reference_trainer.tasks.sandbox import Sandbox
from reference_trainer.tasks.sandbox_settings import SandboxSettings, open_sandbox
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.parsers import OWN, RELEASED
from reference_trainer.workflows.prompts import PLAIN, load_prompts


@dataclass(frozen=True, slots=True)
class Setup:
    """A run ready to start.

    Attributes:
        config: The run.
        stage: Workflow, task and engine.
        bank: Model and adapters.
        served: Proves after every update that the engine serves the adapters.
        protection: What keeps programs in that the model writes; None if the task runs none.
    """

    config: Config
    stage: Stage
    bank: AdapterBank
    served: AdapterCheck
    protection: Protection | None = None


def prepare(config: Config, *, cache: Path, ranks: Ranks = ALONE) -> Setup:
    """Load (or warm up) the base model and put workflow, adapters and engine together.

    Raises:
        SettingsError: Before the model is loaded, if the task runs programs and this machine keeps
            them in less well than ``sandbox.floor`` asks for, or prompts or data cannot be read.
    """
    sandbox = _sandbox(config)
    scene = _scene(config, sandbox)
    with first_rank_first(ranks):
        folder = base_folder(config, cache)
    base, tokenizer = load_model(folder, config.model)
    if config.paper_compat.chat:
        refuse_other_chats(tokenizer, str(folder))
    elif config.prompts not in PLAIN and tokenizer.chat_template is None:
        raise SettingsError(
            f"the tokenizer in {folder} has no chat template, and prompts = {config.prompts!r} are "
            "messages to an instruction-tuned model: give the folder of such a model, or put its "
            "template beside the tokenizer as chat_template.jinja"
        )
    ends = end_ids(base, tokenizer)
    workflow = config.routed()
    policies = tuple(dict.fromkeys(workflow.policies))
    bank = AdapterBank(
        base,
        policies,
        lora=config.lora,
        adam=config.train.adam,
        seed=config.seed,
        lr_factors=per_policy(config.interventions.lr_factors, workflow, default=1.0),
    )
    for role, start in config.initial_adapters.items():
        bank.load_adapter(workflow.policy_of(role), Path(start))
    ranks.hold(
        bank.causal_lm, [parameter for name in policies for parameter in bank.parameters_of(name)]
    )
    engine = _engine(config, bank, folder=folder, ends=ends, ranks=ranks)
    script, chat = load_script(config.workflow), config.paper_compat.chat
    stage = Stage(
        *(script, workflow, scene, engine, tokenizer, ranks),
        released_chat=chat,
        patience=60 * config.rollout.grading_patience,
    )
    check = _adapter_check(stage, bank, config)
    return Setup(config, stage, bank, check, None if sandbox is None else sandbox.protection)


def _sandbox(config: Config) -> Sandbox | None:
    """Where the task runs programs; None if it runs none."""
    if isinstance(config.task, CodeTask):  # it grades in the process's own
        return open_sandbox(SandboxSettings(floor=config.sandbox.floor))
    return open_sandbox(config.sandbox) if isinstance(config.task, DeepCoderSource) else None


def _scene(config: Config, sandbox: Sandbox | None) -> Scene:
    """What episodes play with: texts and rows, which may be missing, are read before the model."""
    prompts = load_prompts(config.prompts, workflow=config.workflow)
    task = _task(config, sandbox)
    _refuse_repeats(config, task)
    parsers = RELEASED if config.paper_compat.parsers else OWN
    return Scene(task, prompts, config.rollout.lenient_selection, config.rules, parsers)


def _task(config: Config, sandbox: Sandbox | None) -> Task:
    released = config.paper_compat.graders
    if isinstance(config.task, DapoMathSource):
        return config.task.load(released=released)
    if isinstance(config.task, DeepCoderSource):
        return config.task.load(sandbox, config.sandbox.limits, released=released)
    return config.task


def _refuse_repeats(config: Config, task: Task) -> None:
    """A validation that would count problems twice, an iteration that is longer than an epoch."""
    if not isinstance(task, DapoMathTask | DeepCoderTask):
        return
    asked = {
        "train": ("rollout.problems", config.rollout.problems, len(task.splits.train)),
        "test": ("validation.problems", config.validation.problems, len(task.splits.test)),
    }
    if not config.validation.every:
        del asked["test"]
    for split, (name, wanted, present) in asked.items():
        if wanted > present:
            raise SettingsError(
                f"{name} = {wanted}, and the {split} split of {task.name} has {present} rows: set "
                "it to that or less, or give another source in task.source"
            )


def _engine(
    config: Config, bank: AdapterBank, *, folder: Path, ends: tuple[int, ...], ranks: Ranks
) -> Engine:
    if config.rollout.engine == "transformers":
        engine = TransformersEngine(bank, end_ids=ends, max_rows=config.rollout.max_rows)
        if config.stress.kind in MISSERVING:
            return MisservingEngine(engine, bank, config.stress, config.routed())
        return engine
    longest = config.rules.max_prompt_tokens + config.rollout.max_new_tokens
    served = Served(folder, config.model.dtype, ends, longest, config.lora.rank)
    return VllmEngine(bank, served, config.rollout.vllm, launched=ranks.count > 1)


def hand_over(setup: Setup, policies: Sequence[str], *, done: int) -> None:
    """Give the engine the weights of ``policies``, and prove that it serves every policy's.

    No proof is asked of an engine that misserves on purpose.

    Args:
        setup: The run.
        policies: Those that have changed.
        done: Iterations they were trained for.

    Raises:
        AdapterError: If it does not, or the ranks have come to hold different weights.
    """
    _refuse_different_weights(setup)
    engine = setup.stage.engine
    engine.sync(policies)
    if isinstance(engine, MisservingEngine):
        engine.hand_over(done)
        return
    with setup.stage.ranks.whole_model():
        setup.served.check()


def _refuse_different_weights(setup: Setup) -> None:
    """Each rank gives its engine its own weights: they have to be the same."""
    bank, ranks = setup.bank, setup.stage.ranks
    if ranks.count == 1:
        return
    held = ranks.gather([{policy: bank.fingerprint(policy) for policy in bank.policies}])
    for number, other in enumerate(held):
        differing = [policy for policy in bank.policies if other[policy] != held[0][policy]]
        if differing:
            raise AdapterError(
                f"process {number} holds other weights of {', '.join(differing)} than process 0, "
                "although both made the same updates: give all processes the same kind of device "
                "and the same versions of torch and peft, then go on from a checkpoint (--resume)"
            )


def _adapter_check(stage: Stage, bank: AdapterBank, config: Config) -> AdapterCheck:
    first, *_ = next(stage.script.play(stage.scene.task.problem("validation", 0), stage.scene))
    (prompt,) = encode([first.messages], stage.tokenizer, released=stage.released_chat)
    return AdapterCheck(
        bank,
        stage.engine,
        prompt=prompt[: config.rules.max_prompt_tokens],
        sampling=Sampling(config.rollout.temperature, 1),
        tolerance=TOLERANCES[config.model.dtype],
    )
