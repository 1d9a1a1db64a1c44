"""A backend of rLLM that tells roledrift about every batch, in the hooks rLLM has for backends."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from roledrift_verl.batch import Sampling
from roledrift_verl.rows_watch import RowsWatch, say
from roledrift_verl.settings import Settings

from roledrift.errors import ConfigError
from roledrift.monitor.open_monitor import disabled
from roledrift_rllm.rows import rows_of


def watched(backend: type[Any], settings: Settings | None = None, **given: Any) -> type[Any]:
    """A subclass of a backend that is watched, for ``UnifiedTrainer(backend_cls=...)``.

    It has the backend's name, because rLLM looks at it.

    Args:
        backend: ``TinkerBackend``, ``VerlBackend``, or any ``BackendProtocol``.
        settings: What to watch.
        given: Or its fields: ``workflow``, ``out``, ``routing``, ``roles``, ``config``.

    Raises:
        ConfigError: If no workflow or no run directory is given.
    """
    chosen = settings or Settings(**given)
    if not chosen.workflow or not chosen.out:
        raise ConfigError(
            f"watched({backend.__name__}) needs workflow= (a preset, or roles and their slots) "
            f"and out= (a run directory), got {chosen}"
        )

    class Watched(backend):  # type: ignore[misc]
        """The backend; roledrift comes after it in every hook."""

        roledrift: Watch | None = None

        async def on_train_start(self, trainer_state: Any) -> None:
            await super().on_train_start(trainer_state)
            if not disabled():
                self.roledrift = Watch(self, chosen, int(trainer_state.global_step))

        async def on_batch_end(self, trainer_state: Any) -> None:
            await super().on_batch_end(trainer_state)
            if self.roledrift is not None:
                self.roledrift.record(trainer_state)

        async def on_train_end(self, trainer_state: Any) -> None:
            failed = sys.exc_info()[0] is not None  # rLLM calls this after a failure too
            await super().on_train_end(trainer_state)
            if self.roledrift is not None and not failed:
                self.roledrift.finish()

    Watched.__name__, Watched.__qualname__ = backend.__name__, backend.__qualname__
    return Watched


class Watch(RowsWatch):
    """Everything that is known during one training.

    Args:
        backend: rLLM's: its ``config`` and ``tokenizer`` are read.
        settings: What to watch.
        step: Steps that were done before.

    Raises:
        ConfigError: If the settings are wrong, or the run is to be stopped and rLLM cannot.
        StoreError: If the run directory cannot be written, or holds a run that this training does
            not continue.
    """

    def __init__(self, backend: Any, settings: Settings, step: int) -> None:
        self._backend = backend
        super().__init__(
            settings,
            settings.out,
            step=step,
            how=sampling_of(backend),
            tokenizer=getattr(backend, "tokenizer", None),
            host=f"rllm.{type(backend).__name__}",
            notes={"gradients": "not measured: rLLM's workers hold them"},
            unnamed="name the trajectories after the roles, or say roles=",
        )
        if self._config.stop_on and _last_step(backend.config) < 1:
            self.monitor.close()
            raise ConfigError(
                f"stop_on is {list(self._config.stop_on)}, but rLLM leaves its loop early only at "
                "rllm.trainer.total_batches: set it (to as many as you want at most)"
            )

    def record(self, state: Any) -> None:
        """Measure the batch, finish its record, add the statistics to what rLLM logs next.

        Args:
            state: rLLM's ``TrainerState``.
        """
        step = int(state.global_step)
        with self.monitor.fenced("batch", cost="capture"):
            rows = rows_of(state, on_policy=self.how.on_policy)
            if rows.responses:  # none where every episode was filtered out
                self._measure(rows, step)
        with self.monitor.fenced("checkpoint"):
            folder = _checkpoint(self._backend.config, step)
            if folder is not None:
                self.monitor.note_checkpoint(step, folder)
        if self.monitor.end_step(step).stop:
            with self.monitor.fenced("stop"):
                self._backend.config.rllm.trainer.total_batches = step
                say(f"roledrift stops the run: step {step} was the last one")
        state.metrics.update(self.statistics.take())


def sampling_of(backend: Any) -> Sampling:
    """How rLLM's configuration says that the responses are sampled."""
    ours, tokenizer = backend.config.rllm, getattr(backend, "tokenizer", None)
    heat = float(ours.rollout.train.temperature)
    verl = backend.config.get("actor_rollout_ref", None)
    engine: float | None = heat
    if verl is not None and verl.rollout.get("logprobs_mode", None) != "processed_logprobs":
        engine = 1.0 if verl.rollout.get("name", None) == "vllm" else None
    ends = {getattr(tokenizer, name, None) for name in ("eos_token_id", "pad_token_id")} - {None}
    correction: Mapping[str, Any] = ours.algorithm.get("rollout_correction", None) or {}
    return Sampling(
        temperature=heat or None,
        rollout_temperature=engine or None,
        longest=int(ours.data.max_response_length) if ends else 0,
        ends=frozenset(int(end) for end in ends if end is not None),
        bypass=verl is not None and bool(correction.get("bypass_mode", False)),
        on_policy=not (ours.get("async_training", None) or {}).get("enable", False),
    )


def _last_step(config: Any) -> int:
    return int(config.rllm.trainer.get("total_batches", None) or 0)


def _checkpoint(config: Any, step: int) -> Path | None:
    """Where rLLM has put this step's checkpoint, if it has written one."""
    for section in ("trainer", "training"):  # verl's, tinker's
        place = (config.get(section, None) or {}).get("default_local_dir", None)
        folder = Path(str(place)) / f"global_step_{step}"
        if place and folder.is_dir():
            return folder
    return None
