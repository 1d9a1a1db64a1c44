"""One training watched: opened when the trainer knows its step, fed once per step."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor

from roledrift.assembly import open_monitor
from roledrift.capture.tokens import TokenCapture
from roledrift.config import from_mapping
from roledrift.errors import ConfigError
from roledrift.ingest.keys import Translator
from roledrift.ingest.roles import RoleMap
from roledrift.measure.sampling import TextSampler
from roledrift.monitor import Monitor
from roledrift.notify.forward import StatisticsLog
from roledrift.store.reader import find_runs, open_run
from roledrift.workflow import Workflow
from roledrift_verl import batch as verl_batch


@dataclass(frozen=True, slots=True)
class Settings:
    """The section ``roledrift`` of verl's configuration.

    Attributes:
        workflow: A preset, or role to slots. Empty: nothing is watched.
        out: Run directory; empty: ``roledrift`` inside ``trainer.default_local_dir``.
        routing: ``shared`` or ``isolated``; verl trains one policy, which is shared.
        roles: Names, output numbers and prompts to roles, for batches that name nobody, as
            ``roledrift import --roles``: ``0=generator:0,~critique=evaluator``.
        config: A TOML file, or nested values; empty: as :func:`roledrift.open_monitor`.
    """

    workflow: str | Mapping[str, int] = ""
    out: str = ""
    routing: str = ""
    roles: str = ""
    config: str | Mapping[str, Any] = field(default_factory=dict)


def settings_of(config: Any) -> Settings | None:
    """What verl's configuration and the environment say; None if nothing is to be watched.

    ``ROLEDRIFT_WORKFLOW``, ``ROLEDRIFT_OUT`` and ``ROLEDRIFT_ROLES`` fill in what the section
    leaves out.

    Args:
        config: verl's configuration, a mapping with ``get``.

    Raises:
        ConfigError: For an unknown key, with the nearest known one.
    """
    section = _plain(config.get("roledrift", None) or {})
    if not isinstance(section, dict):
        raise ConfigError(f"roledrift: needs a section of keys, got {section!r}")
    known = [one.name for one in fields(Settings)]
    for key in section:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {known}"
            raise ConfigError(f"roledrift.{key} is no setting of the verl plugin; {hint}")
    for name in ("workflow", "out", "roles"):
        said = os.environ.get(f"ROLEDRIFT_{name.upper()}", "")
        if said and not section.get(name):
            section[name] = said
    return Settings(**section) if section.get("workflow") else None


def _plain(value: Any) -> Any:
    """Sections of OmegaConf are mappings, but no dictionaries."""
    if hasattr(value, "items"):
        return {str(key): _plain(one) for key, one in value.items()}
    return value


class Watch:
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
        self.how = sampling_of(trainer)
        self.names = RoleMap(settings.roles)
        self.entropy: Tensor | None = None
        routing = settings.routing or None
        if routing not in (None, "shared", "isolated"):
            raise ConfigError(f"roledrift.routing is {routing!r}: say 'shared' or 'isolated'")
        workflow = Workflow.of(settings.workflow, routing=routing)  # type: ignore[arg-type]
        for rule in self.names.rules:
            workflow.index(rule.role)
        place = trainer.config.trainer
        out = Path(settings.out or Path(place.default_local_dir) / "roledrift")
        step = int(trainer.global_steps)
        resume = step > 0 and bool(find_runs(out))
        earlier = open_run(out).samples() if resume else ()
        seen = [one.prompt for one in earlier if "canary" in one.flags]
        self.told = StatisticsLog(workflow.role_names)
        self.monitor: Monitor = open_monitor(
            workflow,
            out,
            config=settings.config or None,
            resume=resume,
            sinks=(self.told,),
            host=f"verl.{type(trainer).__name__}",
            notes={"gradients": "not measured: verl's workers hold them"},
        )
        self._config = from_mapping(self.monitor.header.config)
        self._sampler = TextSampler(self._config.sampling, seen)
        self._capture = TokenCapture(workflow)
        self.monitor.attach(self._capture)
        self._keys = Translator()
        self._nameless = False
        say(
            f"roledrift {version('roledrift')} watches verl.{type(trainer).__name__}: "
            f"{', '.join(f'{one.name} x{one.slots}' for one in workflow.roles)}, from step "
            f"{step + 1}; run directory {out}"
        )

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
        if self.monitor.end_step(step).stop:
            self._stop(step)
        return self.told.take()

    def _measure(self, rows: verl_batch.Rows, step: int) -> None:
        workflow = self.monitor.workflow
        who = verl_batch.speakers(rows, self.names, self._decode)
        if not self._nameless and not any(role in workflow.role_names for role, _ in who):
            self._nameless = True
            say(
                f"roledrift: no row names one of {list(workflow.role_names)} (got "
                f"{sorted({role for role, _ in who})[:5]}): set extra_fields['role'] in the agent "
                "loop, or roledrift.roles"
            )
        texts = None
        if self._config.tier != "economy":
            texts = [self._decode(ids) for ids in rows.responses]
            self.monitor.add_samples(
                verl_batch.samples(
                    workflow,
                    rows,
                    who,
                    how=self.how,
                    step=step,
                    sampler=self._sampler,
                    decode=self._decode,
                )
            )
        made = verl_batch.role_batch(workflow, rows, who, how=self.how, texts=texts)
        self._capture.add(made)
        if made.reward_B is not None and len(made.reward_B):
            self.monitor.add_totals({"reward": float(made.reward_B.double().mean())})
        if self.how.bypass:
            self.monitor.label(rollout="not compared: verl's bypass mode takes old for rollout")

    def _decode(self, ids: list[int]) -> str:
        return str(self.trainer.tokenizer.decode(ids, skip_special_tokens=True))

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
        ends=frozenset(int(one) for one in ends),
        bypass=bool(correction.get("bypass_mode", False)),
        on_policy=mode_of_trainer == "sync",
    )


def say(line: str) -> None:
    """One line where verl's own messages are: its root logger shows warnings only."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
