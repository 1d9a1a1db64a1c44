"""The configuration: frozen dataclasses, read from ``roledrift.toml`` or plain mappings.

All problems of a file are found first and raised together; an unknown key is a problem, with the
nearest known key as a suggestion.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin, get_type_hints

from roledrift.errors import ConfigError

Tier = Literal["economy", "business", "full"]

DEFAULT_WEBHOOK_ENV = "ROLEDRIFT_WEBHOOK_URL"

_REMOVED = {
    "baseline.skip": "learning-rate warm-up is accounted for; leave the key out",
    "gradients.capture": "role gradients are always measured by taps; leave the key out",
    "extensions": "sections of installed detectors are under detectors.<name>",
}
"""Keys of earlier versions, with what to do instead."""

_FORWARD = ("mlflow", "trackio", "wandb", "wandb-rows")


@dataclass(frozen=True, slots=True)
class BaselineConfig:
    """What a run is compared with: its own start, or that of another run.

    Attributes:
        window: Records of the start. It is judged from its fifth record on.
        reference: Run directory of another, healthy run of the same workflow: its first records are
            the start, and this run is judged from its first step. Empty: its own.
    """

    window: int = 8
    reference: str = ""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """How many texts are kept.

    Attributes:
        per_role: Random texts kept per role and sampled step; the role's longest, its highest and
            lowest advantage and a truncated one come on top. 0 keeps only canaries.
        canaries: Prompts that are followed over the whole run.
        every: Keep texts every this many steps.
        seed: Seed of the sampler's own random numbers; the global ones are never touched.
    """

    per_role: int = 2
    canaries: int = 2
    every: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RescoreConfig:
    """Post-step re-scoring: how far one optimizer step moved each role.

    Attributes:
        rows_per_role: Rows re-scored per role; 0 switches it off.
        every: Re-score every this many steps.
        reference_every: In every this many of those steps, score the rows by the reference model
            too, where that is only a matter of switching the adapter off; 0 never does. The tier
            ``full`` does it whenever it re-scores.
    """

    rows_per_role: int = 8
    every: int = 1
    reference_every: int = 10


@dataclass(frozen=True, slots=True)
class GradientsConfig:
    """Per-role gradients, split in the backward pass that happens anyway.

    Attributes:
        every: Measure every this many optimizer steps; 0 switches it off. At tier ``full`` every
            step is measured.
        store: ``fold`` (at most 1 MiB, on a GPU 32 MiB more; error stated), ``full`` (exact), or
            ``sketch`` (also for full fine-tuning; larger error).
    """

    every: int = 4
    store: Literal["fold", "full", "sketch"] = "fold"


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    """Where alerts and statistics go besides the run directory.

    Attributes:
        console: Print alerts on standard error.
        min_level: Level from which alerts go to webhook, wandb and trackio.
        webhook: Address that alerts are posted to. It is a secret: it is not written down.
        webhook_env: Environment variable that holds the address, if ``webhook`` is empty.
        webhook_kind: What the other side reads; ``auto`` knows Slack and Discord by their hosts.
        texts: Send texts of the run along. They leave the machine then.
        wandb: ``run.alert``, if the program has a wandb run open; likewise ``trackio``.
        forward: Logs that get the statistics of every step, for your own loops: ``wandb``,
            ``wandb-rows``, ``trackio``, ``mlflow``. Trainers' integrations use their reporters.
        heartbeat_minutes: Tell of a silence of so many minutes; 0 switches that off.
        heartbeat_steps: Tell of a silence of so many median steps; 0 switches that off. With both,
            the longer one counts.
    """

    console: bool = True
    min_level: Literal["INFO", "WARN", "ERROR"] = "WARN"
    webhook: str = ""
    webhook_env: str = DEFAULT_WEBHOOK_ENV
    webhook_kind: Literal["auto", "json", "slack", "discord"] = "auto"
    texts: bool = False
    wandb: bool = True
    trackio: bool = True
    forward: tuple[str, ...] = ()
    heartbeat_minutes: float = 0.0
    heartbeat_steps: float = 0.0


@dataclass(frozen=True, slots=True)
class CostsConfig:
    """Facts that the cost estimate cannot know by itself.

    Attributes:
        devices: GPUs that the run occupies, those of inference servers included; 0 is what the run
            says itself, if it does.
        gpu_hour: What a GPU hour costs, in any currency; 0 is unknown.
    """

    devices: int = 0
    gpu_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be set.

    Attributes:
        tier: What is measured: ``economy`` (lengths, rewards, token statistics), ``business``
            (and role gradients, texts), ``full`` (everything, every step).
        false_alerts_per_run: Expected number of false alerts in a healthy run, over all detectors,
            roles and steps together. The one sensitivity setting.
        stop_on: Findings, or severities such as ``failing``, that stop the run. Empty: observe
            only.
        findings: Findings that are judged; empty for all. What a run cannot tell is then no gap.
        close_after: Clean records in a row after which an alert closes.
        budget: Share of a step's time that watching may take, all of it: capture, role gradients,
            re-scoring, canaries, texts, judging and writing. After eight steps, and after each
            eight records from then on, what is costly is taken more rarely; where steps are too
            short even for the rest, a trainer's integration records only some of them. The log and
            the record say so; 0 switches that off.
        detectors: One section per detector, under its name. The keys are those of its settings;
            they are checked at set-up.
    """

    tier: Tier = "business"
    false_alerts_per_run: float = 0.05
    stop_on: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    close_after: int = 5
    budget: float = 0.03
    baseline: BaselineConfig = field(default_factory=BaselineConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    rescore: RescoreConfig = field(default_factory=RescoreConfig)
    gradients: GradientsConfig = field(default_factory=GradientsConfig)
    costs: CostsConfig = field(default_factory=CostsConfig)
    detectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    notify: NotifyConfig = field(default_factory=NotifyConfig)


def from_mapping(body: Mapping[str, Any], *, source: str = "configuration") -> Config:
    """Build a configuration from nested plain values.

    Sections of detectors and names of findings are checked by
    :func:`roledrift.detect.settings.checked`, which knows the detectors.

    Args:
        body: As read from TOML; sections and keys are named like the attributes.
        source: Where it came from, for the message.

    Raises:
        ConfigError: With every problem found.
    """
    problems: list[str] = []
    built: Config = build(Config, body, "", problems)
    for name in () if problems else built.notify.forward:
        if name not in _FORWARD:
            problems.append(f"notify.forward: unknown logger {name!r}" + near(name, _FORWARD))
    if not problems and not 0 < built.false_alerts_per_run <= 1:
        problems.append(
            f"false_alerts_per_run must be above 0 and at most 1, got {built.false_alerts_per_run}"
        )
    if problems:
        raise ConfigError(f"{source}: " + "; ".join(problems))
    return built


def watched_with(body: Mapping[str, Any]) -> tuple[Config, str]:
    """As :func:`recorded`; the default and what is wrong if it cannot be read."""
    try:
        return recorded(body), ""
    except ConfigError as error:
        return Config(), f"run.json: judged by the default configuration, {error}"


def recorded(body: Mapping[str, Any]) -> Config:
    """Read the configuration in a run's header; settings that no longer exist are dropped.

    Raises:
        ConfigError: If a value has the wrong type.
    """
    kept = {key: value for key, value in body.items() if key not in ("stop_on", "extensions")}
    baseline = kept.get("baseline")
    if isinstance(baseline, Mapping):
        kept["baseline"] = {key: value for key, value in baseline.items() if key != "skip"}
    gradients = kept.get("gradients")
    if isinstance(gradients, Mapping):
        kept["gradients"] = {key: value for key, value in gradients.items() if key != "capture"}
    # stop_on and the detectors' sections changed their meaning with version 0.2.
    if "false_alerts_per_run" in body:
        kept["stop_on"] = body.get("stop_on", ())
    else:
        kept.pop("detectors", None)
    return from_mapping(kept, source="run.json")


def near(name: str, known: Sequence[str]) -> str:
    """Suggest the known name closest to ``name``, as the end of a message."""
    close = get_close_matches(name, known, n=1)
    return f", did you mean {close[0]!r}?" if close else f"; known are {sorted(known)}"


def build(cls: type[Any], body: Any, path: str, problems: list[str]) -> Any:
    """Build a frozen dataclass from plain values; errors are added to ``problems``.

    Args:
        cls: Its class.
        body: Attribute to value; sections are mappings themselves.
        path: Where they stand in the configuration, for the messages.
        problems: Where these go.
    """
    if not isinstance(body, Mapping):
        problems.append(f"{path or 'the top level'}: needs a section of keys, got {body!r}")
        return cls()
    hints = get_type_hints(cls)
    values: dict[str, Any] = {}
    for key, value in body.items():
        where, mistakes = f"{path}.{key}" if path else str(key), list[str]()
        if where in _REMOVED:
            mistakes.append(f"{where!r} is gone: {_REMOVED[where]}")
        elif key not in hints:
            mistakes.append(f"unknown key {where!r}" + near(str(key), list(hints)))
        elif is_dataclass(hints[key]):
            section = hints[key]
            values[key] = build(
                section if isinstance(section, type) else cls, value, where, mistakes
            )
        else:
            kept = _value(hints[key], value, where, mistakes)
            values |= {} if mistakes else {key: kept}
        problems += mistakes
    return cls(**values)


def _value(hint: Any, value: Any, where: str, problems: list[str]) -> Any:
    origin, wrong = get_origin(hint), ""
    if origin is Mapping:
        return _sections(value, where, problems)
    if isinstance(hint, types.UnionType) and value is None:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if origin is Literal:
        wrong = "" if value in get_args(hint) else f"must be one of {list(get_args(hint))}"
    elif origin is tuple:
        # Any sequence: a host's configuration may hold lists of its own (verl: OmegaConf's).
        names = isinstance(value, Sequence) and not isinstance(value, str)
        names = names and all(isinstance(name, str) for name in value)
        value, wrong = tuple(value) if names else value, "" if names else "needs a list of names"
    elif hint in (int, float):
        number = isinstance(value, hint) and not isinstance(value, bool)
        kind = "number" if hint is float else "whole number"
        wrong = "" if number and 0 <= value < float("inf") else f"needs a finite {kind} >= 0"
    elif not isinstance(value, hint):
        wrong = "needs true or false" if hint is bool else f"needs a {hint.__name__}"
    problems += [f"{where}: {wrong}, got {value!r}"] if wrong else []
    return value


def _sections(value: Any, where: str, problems: list[str]) -> dict[str, dict[str, Any]]:
    if not isinstance(value, Mapping):
        problems.append(f"{where}: needs sections of keys, got {value!r}")
        return {}
    wrong = [name for name, section in value.items() if not isinstance(section, Mapping)]
    problems += [f"{where}.{name}: needs a section of keys, got {value[name]!r}" for name in wrong]
    return {str(name): dict(value[name]) for name in value if name not in wrong}
