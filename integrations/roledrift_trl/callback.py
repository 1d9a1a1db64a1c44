"""The callback: wraps methods of one trainer while it trains, and takes the wraps off again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial, wraps
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from roledrift.capture.attaching import attach_gradients
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.ranks import TorchReducer
from roledrift.config import Config
from roledrift.errors import ConfigError
from roledrift.monitor.metric_monitor import MetricMonitor
from roledrift.monitor.open_monitor import disabled, open_monitor, read_config
from roledrift.notify.console import say as show
from roledrift.notify.metric_logger import StatisticsLog
from roledrift.store.reader import open_run
from roledrift.workflow import POLICY, Workflow
from roledrift_trl.checks import (
    AUTO,
    check_dataset,
    check_trainer,
    compile_setting,
    continues,
    devices_note,
    run_directory,
    scales_in_place,
    workflow_of_data,
)
from roledrift_trl.ending import Ending
from roledrift_trl.forward import ForwardWatch, check_columns
from roledrift_trl.watch import Followed, Watch


class RoleDriftCallback(TrainerCallback):
    """Watches the roles of a trainer and writes a run directory.

    It attaches itself when training begins; nothing else has to be changed::

        trainer = GRPOTrainer(..., callbacks=[RoleDriftCallback("voting", out="runs/voting")])

    With :class:`trl.GRPOTrainer` and :class:`trl.RLOOTrainer` it measures everything; with any
    other :class:`transformers.Trainer` what a forward with labels says: lengths, perplexity and
    entropy per role, and role gradients.

    The training is bit for bit the same with and without it. What is wrong at set-up is raised when
    training begins; what fails later is counted in the record of the step, and training goes on.

    Without a workflow it watches a single policy: no role column is needed, and what the trainer
    logs (clip ratios, KL, gradient norm, reward functions) goes into its records too::

        trainer = GRPOTrainer(..., callbacks=[RoleDriftCallback(out="runs/x")])

    Args:
        workflow: A workflow, the name of a preset, ``{"solver": 3, "judge": 1}``, or ``"auto"``:
            the roles that the column of the training dataset names. None: a single policy.
        out: Run directory. None: ``roledrift`` inside the trainer's ``output_dir``, or
            ``roledrift-2`` and so on if a run is there already.
        overwrite: Replace the run that ``out`` already holds. A resumed training continues it.
        role_column: Dataset column that names each row's role. A ``rollout_func`` may return it
            instead.
        slot_column: Dataset column with the copy of the role (0, 1, ...), if there are several.
        config: As for :func:`roledrift.open_monitor`; likewise ``routing``.
        accuracy: What of an evaluation's logs is the validation accuracy, for example
            ``"eval_rewards/correct/mean"``. None: ``eval_accuracy``, else ``eval_reward`` where
            there is one reward function and each of its rewards lies between 0 and 1.
        trainer: The trainer, if it cannot be found by itself (it is looked for up the stack).
        facts: ``task``, ``scale``, ``seed``, ``notes``, ``host`` for the header of the run, and
            ``notifiers``; see :func:`roledrift.open_monitor`.

    Raises:
        ConfigError: If the workflow is wrong, or slots are named without one.
    """

    def __init__(  # noqa: PLR0913 (everything after ``out`` is optional and named)
        self,
        workflow: Workflow | str | Mapping[str, int] | None = None,
        out: str | Path | None = None,
        *,
        overwrite: bool = False,
        role_column: str = "role",
        slot_column: str | None = None,
        config: Config | Mapping[str, Any] | str | Path | None = None,
        routing: Literal["shared", "isolated"] | None = None,
        accuracy: str | None = None,
        trainer: Any = None,
        **facts: Any,
    ) -> None:
        self._alone = workflow is None
        if self._alone and slot_column is not None:
            raise ConfigError(
                f"slot_column={slot_column!r} needs a workflow that has slots: pass "
                "workflow='auto' or {'generator': 3, 'aggregator': 1}"
            )
        self._routing, self._auto = routing, workflow == AUTO
        known = POLICY if workflow is None or self._auto else workflow
        self.workflow = Workflow.of(known, routing=routing)
        if slot_column is None:  # copies of a role are then one and the same
            self.workflow = self.workflow.without_slots()
        self.trainer = trainer
        self.monitor: MetricMonitor | None = None
        self._out, self._overwrite = out, overwrite
        self._columns = (None if self._alone else role_column, slot_column)
        self._config = config
        self._accuracy = accuracy
        self._facts = facts
        self._wraps: dict[str, Any] = {}
        self._watch: Watch | ForwardWatch | None = None
        self._ending: Ending | None = None

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
        if disabled():
            return
        trainer = self.trainer or _find_trainer(self)
        generates = check_trainer(trainer)
        if self._auto:
            self.workflow = workflow_of_data(trainer, self._columns, self._routing)
        if generates:
            check_dataset(trainer, self.workflow, self._columns)
        else:
            check_columns(trainer, self._columns[0])
        out = run_directory(self._out, args, state.global_step, overwrite=self._overwrite)
        resume = continues(out, args, state.global_step, overwrite=self._overwrite)
        canaries = _canaries(out) if resume else ()
        statistics = StatisticsLog(self.workflow.role_names)
        settings = read_config(self._config)
        probe, coverage = self._gradients(trainer, settings, generates)
        host = f"{'trl' if generates else 'transformers'}.{type(trainer).__name__}"
        facts = {"host": host, "seed": args.seed, **self._facts}
        notes = {"gradients": coverage, "steps": state.max_steps, **devices_note(trainer)}
        facts["notes"] = notes | dict(facts.get("notes") or {})
        self.monitor = open_monitor(
            self.workflow,
            out,
            config=settings,
            resume=resume,
            overwrite=self._overwrite and not resume,
            reducer=TorchReducer.if_several(),
            sinks=(statistics,),
            **facts,
        )
        if resume:  # the checkpoint that is resumed from; it was written after the last record
            self.on_save(args, state)
        if generates:
            score = _original(trainer, "_get_per_token_logps_and_entropies")
            self._watch = Watch(self.monitor, trainer, self._columns, canaries, score=score)
        else:
            self._watch = ForwardWatch(self.monitor, trainer, self._columns[0])
        if probe is not None:
            self._watch.measure_gradients(probe)
        self._ending = Ending(self.monitor, self._watch, alone=self._alone)
        self._wrap(self._watch, statistics, self._ending)
        covered = coverage.splitlines()[0].replace(
            "not measured", "Role gradients are not measured", 1
        )
        say(args, f"  {covered[:1].upper()}{covered[1:]}")

    def _gradients(
        self, trainer: Any, settings: Config, generates: bool
    ) -> tuple[RoleGradientProbe | None, str]:
        slots = generates and self._columns[1] is not None
        probe, coverage = attach_gradients(
            trainer.model,
            self.workflow,
            settings,
            slots=slots,
            halves=slots,
            scaler=trainer.accelerator.scaler,
            compiles=compile_setting(trainer),
        )
        if probe is not None and generates and scales_in_place(trainer):
            probe.detach()
            return None, "not measured: this TRL changes logits in place; TRL 1.16 does not"
        return probe, coverage

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Set rows aside that are scored again after the optimizer step."""
        if self._watch is not None:
            self._watch.before_step()

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: Any,
    ) -> TrainerControl:
        """Finish the step's record; stop the training if the user asked for it."""
        if self._ending is not None:
            self._ending.after_step(state.global_step, logs=control.should_log)
            self._stop(args, state, control)
        return control

    def _stop(self, args: TrainingArguments, state: TrainerState, control: TrainerControl) -> None:
        if self._ending is not None and self._ending.stop and not control.should_training_stop:
            control.should_training_stop = True
            say(args, f"roledrift stops the training after step {state.global_step} (stop_on)")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: Any,
    ) -> None:
        """Take the validation accuracy out of what an evaluation logs."""
        self._stop(args, state, control)
        if self._watch is None or not any(name.startswith("eval_") for name in logs or ()):
            return
        with self._watch.monitor.fenced("evaluation"):
            totals = _accuracy(logs or {}, self._accuracy, self._watch)
            if self._accuracy and not totals:
                self._watch.monitor.count_fault(f"evaluation without {self._accuracy}")
            if state.global_step == 0:
                totals = {"base_accuracy": totals["val_accuracy"]} if totals else {}
            self._watch.monitor.add_totals(totals)

    def on_save(self, args: TrainingArguments, state: TrainerState, *_: Any, **__: Any) -> None:
        """Tell where the checkpoint is, so that an alert can name the last one before the onset."""
        if self.monitor is not None:
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            self.monitor.note_checkpoint(state.global_step, folder)

    def on_train_end(self, *_: Any, **__: Any) -> None:
        """Take the wraps off and close the run, which says what it is."""
        self.detach()

    def detach(self) -> None:
        """Leave the trainer as it was. Calling it again does nothing."""
        if self._ending is not None:
            self._ending.finish()
        if self._watch is not None:
            trainer = self._watch.trainer
            if isinstance(trainer, RoleDriftMixin):
                trainer.roledrift_rounds = {}
            for name, wrap in self._wraps.items():
                # Who wrapped the method after us keeps calling our wrap: it then only passes on.
                if vars(trainer).get(name) is wrap:
                    delattr(trainer, name)
            self._watch.leave()
        self._wraps, self._watch, self._ending = {}, None, None
        if self.monitor is not None:
            self.monitor.close()

    def _wrap(self, watch: Watch | ForwardWatch, statistics: StatisticsLog, ending: Ending) -> None:
        trainer = watch.trainer
        rounds: dict[str, Callable[..., Any]] = {
            name: _following(watch, name, followed) for name, followed in watch.follows().items()
        }
        rounds["log"] = _telling(watch, statistics, ending)
        if isinstance(trainer, RoleDriftMixin):
            trainer.roledrift_rounds = rounds
            return
        for name, around in rounds.items():
            original = getattr(trainer, name)
            self._wraps[name] = wraps(original)(partial(around, original))
        for name, wrap in self._wraps.items():
            setattr(trainer, name, wrap)


class RoleDriftMixin:
    """For who would rather derive a trainer than have its methods wrapped while it trains.

    Typical use::

        class Trainer(RoleDriftMixin, GRPOTrainer): ...

        trainer = Trainer(..., callbacks=[RoleDriftCallback("voting")])

    The callback then finds its way in through the methods of this class, and wraps nothing. It goes
    with trainers that generate (GRPO, RLOO). Without a callback it does nothing.
    """

    roledrift_rounds: Mapping[str, Callable[..., Any]] = {}

    def _generate_and_score_completions(self, *args: Any, **kwargs: Any) -> Any:
        return self._roledrift("_generate_and_score_completions", args, kwargs)

    def _calculate_rewards(self, *args: Any, **kwargs: Any) -> Any:
        return self._roledrift("_calculate_rewards", args, kwargs)

    def _compute_loss(self, *args: Any, **kwargs: Any) -> Any:
        return self._roledrift("_compute_loss", args, kwargs)

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        return self._roledrift("_get_per_token_logps_and_entropies", args, kwargs)

    def log(self, *args: Any, **kwargs: Any) -> Any:
        """The trainer's own, with the statistics per role added."""
        return self._roledrift("log", args, kwargs)

    def _roledrift(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        original, around = _original(self, name), self.roledrift_rounds.get(name)
        return original(*args, **kwargs) if around is None else around(original, *args, **kwargs)


def _accuracy(
    logs: Mapping[str, float], name: str | None, watch: Watch | ForwardWatch
) -> dict[str, float]:
    """Totals of an evaluation; empty if it says nothing that is an accuracy."""
    trainer, fractions = watch.trainer, watch.take_fractions()
    key = name or ("eval_accuracy" if "eval_accuracy" in logs else "eval_reward")
    value = logs.get(key)
    if key == "eval_reward" and not name:
        single = len(getattr(trainer, "reward_funcs", ())) == 1
        value = value if single and fractions else None
    if value is None or not (name or 0 <= value <= 1):
        return {}
    problems = trainer.eval_dataset
    sized = hasattr(problems, "__len__") and not isinstance(problems, Mapping)
    return {"val_accuracy": float(value), **({"val_n": float(len(problems))} if sized else {})}


def _original(trainer: Any, name: str) -> Callable[..., Any]:
    """A method as the trainer has it without us."""
    owner = super(RoleDriftMixin, trainer) if isinstance(trainer, RoleDriftMixin) else trainer
    method: Callable[..., Any] = getattr(owner, name)
    return method


def _following(watch: Watch | ForwardWatch, name: str, followed: Followed) -> Callable[..., Any]:
    """What calls a method and does what is to be done around it."""

    def call(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        training, then = watch.training, followed.after if watch.training else followed.evaluated
        if training and followed.before is not None:
            with watch.monitor.fenced(f"before {name}", cost="capture"):
                followed.before((*args, *kwargs.values()))
        result = original(*args, **kwargs)
        if watch.live and then is not None:
            with watch.monitor.fenced(f"after {name}", cost="capture"):
                then((*args, *kwargs.values()), result)
        return result

    return call


def _telling(
    watch: Watch | ForwardWatch, statistics: StatisticsLog, ending: Ending
) -> Callable[..., Any]:
    def log(
        original: Callable[..., Any], /, logs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        if watch.training:
            ending.logged(logs)
            with watch.monitor.fenced("log"):
                logs.update(statistics.take())
        return original(logs, *args, **kwargs)

    return log


def _find_trainer(callback: TrainerCallback) -> Any:
    """The trainer that is calling ``callback`` right now, from the call stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        handler = getattr(owner, "callback_handler", None)
        if any(known is callback for known in getattr(handler, "callbacks", ())):
            return owner
        frame = frame.f_back
    return None


def say(args: TrainingArguments, lines: str) -> None:
    """Print on standard error, where alerts are, from the first process only."""
    if args.process_index == 0:
        show(lines)


def _canaries(out: Path) -> list[str]:
    """Prompts that the earlier segments of a run followed."""
    return [sample.prompt for sample in open_run(out).samples() if "canary" in sample.flags]
