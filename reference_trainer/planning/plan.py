"""Whether a run fits a device, and the settings that make it fit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError
from reference_trainer.planning.duration import Duration, duration
from reference_trainer.planning.gpu import Gpu, Lengths, problems
from reference_trainer.planning.memory import Memory, largest_micro_batch, memory, sampled_together
from reference_trainer.reading import merge

Settings = dict[str, Any]
"""Values of settings by their names."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs.

    Attributes:
        config: The run.
        gpu: What it is planned for.
        memory: Of one device.
        duration: Of one iteration.
        advice: Settings, by their names, with which it fits; empty if it fits as it is or no
            setting helps.
    """

    config: Config
    gpu: Gpu
    memory: Memory
    duration: Duration
    advice: Settings

    @property
    def fits(self) -> bool:
        """Whether the run fits as it is."""
        return _fits(self.memory, self.gpu)


def plan(config: Config, gpu: Gpu, lengths: Lengths | None = None) -> Plan:
    """Plan a run, and look for settings that make it fit if it does not.

    Args:
        config: The run.
        gpu: The device, and how many of them.
        lengths: Mean lengths of prompts and outputs.

    Raises:
        SettingsError: If a number of ``gpu`` or ``lengths`` is wrong, or the shapes of the base
            model are not known.
    """
    lengths = lengths or Lengths()
    if wrong := problems(gpu, lengths):
        raise SettingsError("; ".join(wrong))
    needed = memory(config, gpu)
    advice = {} if _fits(needed, gpu) else advised(config, gpu)
    return Plan(config, gpu, needed, duration(config, gpu, lengths), advice)


def _fits(needed: Memory, gpu: Gpu) -> bool:
    """Every moment fits, and the engine can hold at least one sequence of full length."""
    return needed.peak <= gpu.usable and (needed.rows is None or needed.rows >= 1)


def advised(config: Config, gpu: Gpu) -> Settings:
    """The fewest settings to change for ``config`` to fit, by name; empty if nothing helps.

    First what costs only time, then how long rows may be, which changes the experiment. Whatever is
    returned has been planned again and fits.
    """
    saving = _saving(config, gpu)
    for lengths in ({}, *_shorter(config)):
        if (settings := _with_share(config, saving | lengths, gpu)) is not None:
            return _relaxed(config, settings, gpu)
    return {}


def fits_with(config: Config, settings: Settings, gpu: Gpu) -> bool:
    """Whether ``config`` fits with other values of some settings."""
    return _fits(memory(changed(config, settings), gpu), gpu)


def changed(config: Config, settings: Settings) -> Config:
    """``config`` with other values of some settings, by their names."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(config)))
    for name, value in settings.items():
        for part in reversed(name.split(".")):
            value = {part: value}
        values = merge(values, value)
    return from_mapping(values)


def _saving(config: Config, gpu: Gpu) -> Settings:
    """Every setting that saves memory and costs only time, as low as it goes."""
    settings: Settings = {}
    if gpu.count > 1 and config.parallel.mode == "ddp":
        settings["parallel.mode"] = "fsdp2"
    if config.rollout.engine == "vllm" and not config.rollout.vllm.sleep:
        settings["rollout.vllm.sleep"] = True
    if config.rollout.engine == "transformers" and config.rollout.max_rows != 1:
        settings[_SAMPLED] = 1
    if not config.model.gradient_checkpointing:
        settings["model.gradient_checkpointing"] = True
    if _rows(config) > 1:
        settings[_ROWS] = 1
    return settings


def _rows(config: Config) -> int:
    """Rows of full length in the largest micro-batch."""
    return largest_micro_batch(config).outputs // config.rollout.max_new_tokens


def _shorter(config: Config) -> Iterator[Settings]:
    """Shorter rows, the least change first: prompts, then outputs too."""
    prompts, outputs = config.rules.max_prompt_tokens, config.rollout.max_new_tokens
    for eighths in (6, 4, 2, 1):
        yield {_PROMPT: _part(prompts, eighths)}
    for eighths in (6, 4, 2, 1):
        yield {_PROMPT: _part(prompts, eighths), _OUTPUT: _part(outputs, eighths)}


def _part(tokens: int, eighths: int) -> int:
    return max(1, tokens * eighths // 8)


def _with_share(config: Config, settings: Settings, gpu: Gpu) -> Settings | None:
    """``settings``, and the engine's share of the device that fits beside them; None if none does.

    The share is the largest that fits: what it holds beside weights is the cache.
    """
    if fits_with(config, settings, gpu):
        return settings
    if config.rollout.engine != "vllm":
        return None
    needed = memory(changed(config, settings), gpu)
    own = needed.peak - needed.parts[needed.tightest]["engine"]
    hundredths = int(100 * (gpu.usable - own) / gpu.memory)
    if hundredths < 1:
        return None
    settings = settings | {_SHARE: hundredths / 100}
    return settings if fits_with(config, settings, gpu) else None


def _relaxed(config: Config, settings: Settings, gpu: Gpu) -> Settings:
    """``settings`` without those that are not needed, with as many rows at a time as fit."""
    for name in list(settings):
        without = {key: value for key, value in settings.items() if key != name}
        if fits_with(config, without, gpu):
            settings = without
    for name, most in ((_ROWS, _rows(config)), (_SAMPLED, sampled_together(config, gpu))):
        low, high = 1, most
        while name in settings and high - low > 1:
            middle = (low + high) // 2
            if fits_with(config, settings | {name: middle}, gpu):
                low = middle
            else:
                high = middle
        if name in settings:
            settings = settings | {name: low}
    return settings


_PROMPT, _OUTPUT = "rules.max_prompt_tokens", "rollout.max_new_tokens"
_SHARE, _ROWS, _SAMPLED = "rollout.vllm.gpu_memory", "train.microbatch", "rollout.max_rows"

EXPERIMENT = frozenset({_PROMPT, _OUTPUT})
"""Settings that decide what is learned, not only how fast."""
