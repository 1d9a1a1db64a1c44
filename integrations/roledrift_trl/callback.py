"""The callback: wraps methods of one trainer while it trains, and takes the wraps off again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from roledrift.assembly import open_monitor, read_config
from roledrift.capture.gradients import RoleGradientProbe, attach_gradients
from roledrift.capture.ranks import TorchReducer
from roledrift.capture.tokens import TokenCapture
from roledrift.config import Config, from_mapping
from roledrift.errors import AttachError
from roledrift.measure.sampling import TextSampler
from roledrift.monitor import Monitor
from roledrift.notify.forward import StatisticsLog
from roledrift.workflow import Workflow
from roledrift_trl import batch as trl_batch
from roledrift_trl import rescoring

_METHODS = (
    "_generate_and_score_completions",
    "_calculate_rewards",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
)


class RoleDriftCallback(TrainerCallback):
    """Watches the roles of a :class:`trl.GRPOTrainer` and writes a run directory.

    It attaches itself when training begins; nothing else has to be changed::

        trainer = GRPOTrainer(..., callbacks=[RoleDriftCallback("voting", out="runs/voting")])

    The training is bit for bit the same with and without it. What is wrong at set-up is raised when
    training begins; what fails later is counted in the record of the step, and training goes on.

    Args:
        workflow: A workflow, the name of a preset, or ``{"generator": 3, "aggregator": 1}``.
        out: Run directory. None: ``roledrift`` inside the trainer's ``output_dir``.
        role_column: Dataset column that names each row's role. A ``rollout_func`` may return it
            instead.
        slot_column: Dataset column with the copy of the role (0, 1, ...), if there are several.
        config: As for :func:`roledrift.open_monitor`; likewise ``routing``.
        trainer: The trainer, if it cannot be found by itself (it is looked for up the stack).
        facts: ``task``, ``scale``, ``seed``, ``notes``, ``host`` for the header of the run, and
            ``notifiers``; see :func:`roledrift.open_monitor`.

    Raises:
        ConfigError: If the workflow is wrong.
    """

    def __init__(
        self,
        workflow: Workflow | str | Mapping[str, int],
        out: str | Path | None = None,
        *,
        role_column: str = "role",
        slot_column: str | None = None,
        config: Config | Mapping[str, Any] | str | Path | None = None,
        routing: Literal["shared", "isolated"] | None = None,
        trainer: Any = None,
        **facts: Any,
    ) -> None:
        self.workflow = Workflow.of(workflow, routing=routing)
        self.trainer = trainer
        self.monitor: Monitor | None = None
        self._out = out
        self._columns = (role_column, slot_column)
        self._config = config
        self._facts = facts
        self._wraps: dict[str, Any] = {}
        self._watch: _Watch | None = None

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,  # noqa: ARG002 - the event's signature
        **_: Any,
    ) -> None:
        """Attach to the trainer and open the run; a resumed training continues its run.

        Raises:
            AttachError: If there is no trainer, or it is none that can be watched.
            ConfigError: If the configuration is wrong or the dataset does not name the roles.
            StoreError: If the run directory cannot be written.
        """
        self.detach()
        trainer = self.trainer or _find_trainer(self)
        check_trainer(trainer)
        trl_batch.check_dataset(trainer, self.workflow, self._columns)
        out = Path(self._out or Path(str(args.output_dir)) / "roledrift")
        resume = state.global_step > 0
        canaries = trl_batch.canaries(out) if resume else ()
        told = StatisticsLog(self.workflow.role_names)
        settings, scaler = read_config(self._config), trainer.accelerator.scaler
        slots = self._columns[1] is not None
        probe, said = attach_gradients(
            trainer.model, self.workflow, settings, slots=slots, halves=slots, scaler=scaler
        )
        facts = {"host": f"trl.{type(trainer).__name__}", "seed": args.seed, **self._facts}
        facts["notes"] = {"gradients": said, **(facts.get("notes") or {})}
        self.monitor = open_monitor(
            self.workflow,
            out,
            config=settings,
            resume=resume,
            reducer=TorchReducer.if_several(),
            sinks=(told,),
            **facts,
        )
        if resume:  # the checkpoint that is resumed from; it was written after the last record
            self.on_save(args, state)
        self._watch = _Watch(self.monitor, trainer, self._columns, canaries)
        if probe is not None:
            self._watch.measure_gradients(probe)
        self._wrap(self._watch, told)

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Set rows aside that are scored again after the optimizer step."""
        if self._watch is not None:
            self._watch.before_step()

    def on_step_end(
        self,
        args: TrainingArguments,  # noqa: ARG002 - the event's signature
        state: TrainerState,
        control: TrainerControl,
        **_: Any,
    ) -> TrainerControl:
        """Finish the step's record; stop the training if the user asked for it."""
        if self._watch is not None and self._watch.after_step(state.global_step):
            control.should_training_stop = True
        return control

    def on_save(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Tell where the checkpoint is, so that an alert can name the last one before the onset."""
        if self.monitor is not None:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            self.monitor.note_checkpoint(state.global_step, folder)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Take the wraps off and close the run."""
        self.detach()

    def detach(self) -> None:
        """Leave the trainer as it was. Calling it again does nothing."""
        if self._watch is not None:
            trainer = self._watch.trainer
            for name, wrap in self._wraps.items():
                # Who wrapped the method after us keeps calling our wrap: it then only passes on.
                if vars(trainer).get(name) is wrap:
                    delattr(trainer, name)
            self._watch.leave()
        self._wraps, self._watch = {}, None
        if self.monitor is not None:
            self.monitor.close()

    def _wrap(self, watch: _Watch, told: StatisticsLog) -> None:
        trainer = watch.trainer
        notes: tuple[Callable[[Any, Any], None], ...]
        notes = (watch.generated, watch.rewarded, watch.trained, watch.forwarded)
        for name, note in zip(_METHODS, notes, strict=True):
            before = watch.labelled if name == "_compute_loss" else None
            self._wraps[name] = _followed(watch, name, then=note, before=before)
        self._wraps["log"] = _telling(watch, trainer.log, told)
        for name, wrap in self._wraps.items():
            setattr(trainer, name, wrap)


class _Watch:
    """What is known during one training: the wraps fill it, the callback's events empty it."""

    def __init__(
        self,
        monitor: Monitor,
        trainer: Any,
        columns: tuple[str, str | None],
        canaries: Sequence[str],
    ) -> None:
        self.live = True
        self.trainer = trainer
        self.monitor = monitor
        self._columns = columns
        self._config = from_mapping(monitor.header.config)
        self._sampler = TextSampler(self._config.sampling, canaries)
        self._capture = TokenCapture(monitor.workflow)
        self._score = trainer._get_per_token_logps_and_entropies
        self._scored: trl_batch.Scored | None = None
        self._made: trl_batch.Generation | None = None
        self._forward: Sequence[Any] | None = None
        self._parts: list[trl_batch.Rows] = []
        self._again: list[trl_batch.Rows] = []
        self._gradients: RoleGradientProbe | None = None
        self._moved: set[int] = set()
        monitor.attach(self._capture)

    def measure_gradients(self, probe: RoleGradientProbe) -> None:
        """Split the gradients by role from now on."""
        self._gradients = probe
        self.monitor.attach(probe)

    def leave(self) -> None:
        """Take the gradient probe out of the model; what still calls the wraps changes nothing."""
        self.live = False
        if self._gradients is not None:
            self._gradients.detach()

    def labelled(self, call: Sequence[Any]) -> None:
        """Tell the gradient probe whose rows the forward of the loss is about to see."""
        if self._gradients is None or self._made is None or trl_batch.ROW not in call[1]:
            return
        rows = call[1][trl_batch.ROW].tolist()
        slots = self._made.slots
        self._gradients.set_groups(
            [self._made.roles[row] for row in rows],
            None if slots is None else [slots[row] for row in rows],
            prompt=[self._made.prompts[row] for row in rows],
        )

    @property
    def training(self) -> bool:
        """False during evaluation, which is no part of the training statistics."""
        return self.live and bool(self.trainer.model.training)

    def rewarded(self, call: Sequence[Any], result: Any) -> None:
        """Note what the reward functions saw and said."""
        self._scored = trl_batch.scored(call, result, self.trainer)

    def generated(self, call: Sequence[Any], out: dict[str, Any]) -> None:
        """Note the roles of new rows, send row numbers along, measure the outputs."""
        rows, workflow = call[0], self.monitor.workflow
        source, self._scored = self._scored, None
        step = int(self.trainer.state.global_step)
        made = trl_batch.generation(
            workflow, rows, columns=self._columns, after=self._made, step=step
        )
        self._made = made
        out[trl_batch.ROW] = torch.arange(len(rows))
        if source is None:
            self.monitor.count_fault("generation without a call of the reward functions")
            return
        batch = trl_batch.rollout(workflow, made, out, source=source, trainer=self.trainer)
        self._capture.add(batch)
        self.monitor.add_totals({"reward": self.trainer._metrics["train"]["reward"][-1]})
        if self._config.tier != "economy":
            self.monitor.add_samples(
                trl_batch.samples(
                    workflow, made, out, source=source, trainer=self.trainer, sampler=self._sampler
                )
            )

    def forwarded(self, _call: Sequence[Any], result: Sequence[Any]) -> None:
        """Note the log-probabilities of the loss: the only ones computed with gradients."""
        if torch.is_grad_enabled():
            self._forward = result[:2]

    def trained(self, call: Sequence[Any], _result: Any) -> None:
        """Measure one micro-batch from the log-probabilities that its loss was computed with."""
        inputs, forward, self._forward = call[1], self._forward, None
        if self._gradients is not None:
            self._gradients.set_groups(None)
        if forward is None or self._made is None or trl_batch.ROW not in inputs:
            self.monitor.count_fault("micro-batch without log-probs or roles")
            return
        rows = trl_batch.trained(self._made, inputs, forward[0])
        self._moved.update(rows.roles)
        if "pixel_values" not in inputs:  # images are not laid out by rows: no re-scoring
            self._parts.append(rows)
        self._capture.add(
            trl_batch.update(
                self.monitor.workflow, rows, inputs, forward=forward, trainer=self.trainer
            )
        )

    def before_step(self) -> None:
        """Choose the rows to score again, while the old weights are still there."""
        step = int(self.trainer.state.global_step) + 1
        names = self.monitor.workflow.role_names
        self.monitor.add_updates({names[role]: 1 for role in self._moved if role >= 0})
        self._moved = set()
        parts, self._parts, self._again = self._parts, [], []
        settings = self._config.rescore
        if not (parts and settings.rows_per_role and self.monitor.due(step, settings.every)):
            return
        with self.monitor.fenced("rows to score again", cost="rescore"):
            rows = rescoring.choose(parts, per_role=settings.rows_per_role, roles=len(names))
            noisy = getattr(self.trainer.args, "neftune_noise_alpha", None) is not None
            if noisy or rescoring.is_noisy(self.trainer.model):
                rows = rescoring.score_all(rows, self._score, trainer=self.trainer)
            self._again = rows

    def after_step(self, step: int) -> bool:
        """Score the chosen rows again, finish the record; True if the training is to stop."""
        rows, self._again = self._again, []
        with self.monitor.fenced("score again", cost="rescore"):
            again = rescoring.score_all(rows, self._score, trainer=self.trainer)
            reference: Sequence[trl_batch.Rows | None] = [None] * len(again)
            wanted = rescoring.wants_reference(self._config, step)
            if again and wanted and rescoring.has_reference(self.trainer):
                with rescoring.adapter_off(self.trainer.model):
                    reference = rescoring.score_all(rows, self._score, trainer=self.trainer)
                self.monitor.label(**{"reference model": "the model with its adapter off"})
            heat = float(self.trainer.temperature)
            for sides in zip(rows, again, reference, strict=True):
                self._capture.add(
                    rescoring.compared(self.monitor.workflow, *sides, temperature=heat)
                )
        return self.monitor.end_step(step).stop


def _followed(
    watch: _Watch,
    name: str,
    *,
    then: Callable[[Any, Any], None],
    before: Callable[[Any], None] | None = None,
) -> Callable[..., Any]:
    """The trainer's method with ``before(arguments)`` and ``then(arguments, result)`` around it.

    Both only in training: evaluation is no part of the training statistics.
    """
    original = getattr(watch.trainer, name)

    @wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        training = watch.training
        if training and before is not None:
            with watch.monitor.fenced(f"before {name}", cost="capture"):
                before((*args, *kwargs.values()))
        result = original(*args, **kwargs)
        if training:
            with watch.monitor.fenced(f"after {name}", cost="capture"):
                then((*args, *kwargs.values()), result)
        return result

    return call


def _telling(
    watch: _Watch, original: Callable[..., Any], told: StatisticsLog
) -> Callable[..., Any]:
    @wraps(original)
    def log(logs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        if watch.training:
            with watch.monitor.fenced("log"):
                logs.update(told.take())
        return original(logs, *args, **kwargs)

    return log


def _find_trainer(callback: TrainerCallback) -> Any:
    """The trainer that is calling ``callback`` right now, from the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        handler = getattr(owner, "callback_handler", None)
        if any(one is callback for one in getattr(handler, "callbacks", ())):
            return owner
        frame = frame.f_back
    return None


def check_trainer(trainer: Any) -> None:
    """Is this a trainer that can be watched?

    Raises:
        AttachError: If it is None or lacks a method that is wrapped.
    """
    if trainer is None:
        raise AttachError(
            "no trainer found on the call stack: set callback.trainer = trainer before train()"
        )
    lacking = [name for name in _METHODS if not hasattr(trainer, name)]
    if lacking:
        raise AttachError(
            f"{type(trainer).__name__} has no {', '.join(lacking)}: RoleDriftCallback watches "
            "trl.GRPOTrainer; for another loop use roledrift.open_monitor and TokenCapture"
        )
    if hasattr(trainer, "compute_liger_loss") and trainer.args.use_liger_kernel:
        raise AttachError(
            "the Liger GRPO loss of this TRL version hides log-probabilities: set "
            "use_liger_kernel=False, or use TRL 1.16, which has replaced that loss"
        )
