"""One training watched: opened when the trainer knows its step, fed once per step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from roledrift.costs import NOTE_DEVICES
from roledrift.ingest.keys import Translator
from roledrift_verl import batch as verl_batch
from roledrift_verl import update
from roledrift_verl.rows_watch import RowsWatch, say
from roledrift_verl.settings import Settings
from roledrift_verl.wire import Order, Report


def _devices(place: Any) -> dict[str, str]:
    """How many GPUs verl's pool holds, for the estimate of costs."""
    pool = [place.get(name) for name in ("nnodes", "n_gpus_per_node")]
    if not all(isinstance(size, int) and size > 0 for size in pool):
        return {}
    return {NOTE_DEVICES: f"{pool[0] * pool[1]} (trainer.nnodes times trainer.n_gpus_per_node)"}


class Watch(RowsWatch):
    """Everything that is known during one training.

    Args:
        trainer: verl's: its ``config``, ``tokenizer``, ``global_steps`` are read.
        settings: What to watch.

    Raises:
        ConfigError: If the settings are wrong.
        StoreError: If the run directory cannot be written, or holds a run that this training does
            not continue.
    """

    def __init__(self, trainer: Any, settings: Settings) -> None:
        self.trainer = trainer
        self.entropy: Tensor | None = None
        place = trainer.config.trainer
        super().__init__(
            settings,
            settings.out or Path(place.default_local_dir) / "roledrift",
            step=int(trainer.global_steps),
            how=sampling_of(trainer),
            tokenizer=trainer.tokenizer,
            host=f"verl.{type(trainer).__name__}",
            notes={
                "gradients": "measured in verl's workers; a record without any says why",
                "steps": str(getattr(trainer, "total_training_steps", "")),
                **_devices(place),
            },
            unnamed="set extra_fields['role'] in the agent loop, or roledrift.roles",
        )
        self._gradients = update.WorkerGradients()
        self.monitor.attach(self._gradients)
        self._heard = False
        self._kept: dict[tuple[str, ...], verl_batch.Rows] = {}
        self._keys = Translator()

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Note the accuracy of a validation, as the log readers find it among verl's keys."""
        _, totals = self._keys(metrics)
        if "val_accuracy" in totals:
            self.monitor.add_totals({"val_accuracy": totals["val_accuracy"]})
            if not self.trainer.global_steps:
                self.monitor.label(validation="before the first step")

    def saved(self) -> None:
        """Tell where the checkpoint is, so that an alert can name the last one before the onset."""
        step = int(self.trainer.global_steps)
        folder = Path(self.trainer.config.trainer.default_local_dir) / f"global_step_{step}"
        self.monitor.note_checkpoint(step, folder)

    @contextmanager
    def updating(self, held: update.Held) -> Iterator[None]:
        """Around an update of the actor: tell the workers whose rows they see, score some again."""
        step = int(self.trainer.global_steps)
        after: Callable[[], None] | None = None
        self._heard = False
        with self.monitor.fenced("before the update", cost="capture"):
            rows = held.read()
            self._kept = {held.keys: rows} if held.keys else {}
            who = self._speakers(rows)
            workflow = self.monitor.workflow
            columns, slots, problems = update.columns_of(workflow, rows, who, total=len(held))
            held.send(columns, self._order(step, slots=slots, problems=problems))
            after = self._scoring(held, rows, who)
        try:
            yield
        finally:
            with self.monitor.fenced("after the update"):
                held.take_back()
        if not self._heard:
            self.monitor.label(
                workers="no report of the update: is roledrift installed where they run?"
            )
        if after is not None:
            with self.monitor.fenced("score again", cost="rescore"):
                after()

    def _order(self, step: int, *, slots: bool, problems: bool) -> Order:
        return Order(
            step,
            self.monitor.workflow,
            self._config,
            slots=slots,
            problems=problems,
            clip=update.clip_of(self.trainer),
            temperature=self.how.temperature,
            rollout_temperature=self.how.rollout_temperature,
            bypass=self.how.bypass,
            on_policy=self.how.on_policy,
            stretch=self._gradients.factor,
        )

    def _scoring(
        self, held: update.Held, rows: verl_batch.Rows, who: Sequence[tuple[str, int | None]]
    ) -> Callable[[], None] | None:
        """What scores the chosen rows again after the update; None if that is not due."""
        settings, workflow = self._config.rescore, self.monitor.workflow
        step = int(self.trainer.global_steps)
        if not (settings.rows_per_role and self.monitor.due(step, settings.every)):
            return None
        if update.replays_routing(self.trainer):
            self.monitor.label(update="not measured: verl replays the routing of what it scores")
            return None
        chosen = update.choose(
            workflow.role_names,
            who,
            per_role=settings.rows_per_role,
            multiple=update.multiple_of(self.trainer),
        )
        if not chosen:
            self.monitor.label(update="not measured: too few rows for verl to deal out")
            return None
        places = [rows.places[row] for row in chosen]
        # The logged log-probabilities are the engine's in bypass mode, and older than this update
        # where one iteration holds several.
        own = not self.how.bypass and self.how.on_policy
        before = rows.tokens["old_log_probs"][chosen] if own else held.score(places)
        steps = update.steps_of(self.trainer, len(held))

        def again() -> None:
            made = update.compared(
                workflow,
                rows,
                who,
                chosen=chosen,
                scores=(before, held.score(places)),
                how=self.how,
                steps=steps,
            )
            self._capture.add(made)

        return again

    def kept(self, keys: Sequence[str]) -> verl_batch.Rows | None:
        """Rows that were read for the update and not since; None if they are not these."""
        kept, self._kept = self._kept, {}
        return kept.get(tuple(keys))

    def hear(self, reports: Sequence[Report]) -> None:
        """Take in what the workers saw during the update that is going on."""
        with self.monitor.fenced("reports of the workers", cost="capture"):
            self._heard = True
            moved: dict[int, set[int]] = {}
            for report in reports:
                for table in report.tables:
                    self.monitor.observe(table)
                    moved.setdefault(report.number, set()).update(table.role_N.tolist())
                for what, times in report.faults.items():
                    self.monitor.count_fault(what, times)
                self._gradients.add(report.gradients)
                if report.coverage.startswith("not measured"):
                    self.monitor.label(gradients=report.coverage)
            names = self.monitor.workflow.role_names
            for roles in moved.values():
                self.monitor.add_updates({names[role]: 1 for role in roles})

    def record(self, read: Callable[[], verl_batch.Rows], step: int) -> dict[str, float]:
        """Measure the rows of a step and finish its record.

        Args:
            read: Makes the rows; what fails in it is counted.
            step: Step of the trainer.

        Returns:
            Statistics for verl's own log, ``roledrift/<role>/<statistic>``.
        """
        with self.monitor.fenced("batch", cost="capture"):
            self._measure(read(), step)
            if self.how.bypass and not self._heard:
                self.monitor.label(rollout="not compared: verl's bypass mode takes old for rollout")
        if self.monitor.end_step(step).stop:
            self._stop(step)
        return self.statistics.take()

    def _stop(self, step: int) -> None:
        """Make the next step the last one: verl then saves, validates and ends as ever."""
        with self.monitor.fenced("stop"):
            self.trainer.total_training_steps = min(self.trainer.total_training_steps, step + 1)
            say(f"roledrift stops the run: step {step + 1} is the last one")


def sampling_of(trainer: Any) -> verl_batch.Sampling:
    """How verl's configuration says that the responses are sampled."""
    config, tokenizer = trainer.config, trainer.tokenizer
    rollout = config.actor_rollout_ref.rollout
    correction = config.algorithm.get("rollout_correction", None) or {}
    heat = float(rollout.temperature)
    mode = rollout.get("logprobs_mode", None)
    # Without the setting (verl up to 0.6), vLLM reports what it computed before the temperature.
    engine = (
        heat if mode == "processed_logprobs" else 1.0 if rollout.get("name") == "vllm" else None
    )
    mode_of_trainer = (config.trainer.get("v1", None) or {}).get("trainer_mode", "sync")
    ends = {tokenizer.eos_token_id, getattr(tokenizer, "pad_token_id", None)} - {None}
    return verl_batch.Sampling(
        temperature=heat if heat > 0 else None,
        rollout_temperature=engine if engine else None,
        longest=int(config.data.get("max_response_length", 0) or 0),
        ends=frozenset(int(end) for end in ends),
        bypass=bool(correction.get("bypass_mode", False)),
        on_policy=mode_of_trainer == "sync",
    )
