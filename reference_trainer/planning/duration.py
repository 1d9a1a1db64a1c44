"""Tokens and time of one iteration, under stated assumptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_trainer.config import Config
from reference_trainer.planning.episode import spans_per_iteration
from reference_trainer.planning.gpu import Gpu, Lengths
from reference_trainer.planning.memory import memory, sampled_together
from reference_trainer.planning.shapes import sizes, trained
from reference_trainer.planning.step_on_shapes import operations


@dataclass(frozen=True, slots=True)
class RoleTokens:
    """Rows of one role in an iteration.

    Attributes:
        rows: Outputs.
        prompt: Mean tokens of a prompt.
        output: Mean tokens of an output.
    """

    rows: int
    prompt: float
    output: float


@dataclass(frozen=True, slots=True)
class Duration:
    """Work and time of one iteration on all devices of a run.

    Attributes:
        roles: By role.
        sampled: Output tokens.
        trained: Tokens of the rows that are trained on, prompts included.
        operations: Floating-point operations of the updates.
        tokens_per_second: Output tokens per second and device.
        seconds: By part.
    """

    roles: Mapping[str, RoleTokens]
    sampled: float
    trained: float
    operations: float
    tokens_per_second: float
    seconds: Mapping[str, float]

    @property
    def total(self) -> float:
        """Seconds of an iteration."""
        return sum(self.seconds.values())


def duration(config: Config, gpu: Gpu, lengths: Lengths) -> Duration:
    """Tokens and time of an iteration in which every row is trained on and every round is played.

    Grades and optimizer steps cost no time here: grades are computed while the next phase is
    sampled, and an adapter's step is a matter of milliseconds.
    """
    roles = {
        role: _tokens(config, lengths, spans.calls, spans.quoted)
        for role, spans in spans_per_iteration(config).items()
    }
    sampled = sum(role_tokens.rows * role_tokens.output for role_tokens in roles.values())
    model = trained(config)
    passes = 2 if config.train.old_logps == "trainer" else 1
    epochs, done = config.train.epochs, 0.0
    for role, role_tokens in roles.items():
        if role not in config.train.left_out:
            forward, backward = operations(
                model, role_tokens.prompt + role_tokens.output, role_tokens.output
            )
            done += role_tokens.rows * epochs * (passes * forward + backward)
    pace = gpu.tokens_per_second or _pace(config, gpu, roles)
    sampling = sampled / (pace * gpu.count)
    every, problems = config.validation.every, config.rollout.problems * config.rollout.copies
    seconds = {
        "sampling": sampling,
        "update": done / (gpu.tflops * 1e12 * gpu.utilisation * gpu.count),
    }
    if every:
        seconds["validation"] = sampling * config.validation.problems / problems / every
    return Duration(
        roles,
        sampled,
        sum(
            role_tokens.rows * (role_tokens.prompt + role_tokens.output)
            for role_tokens in roles.values()
        ),
        done,
        pace,
        seconds,
    )


def _tokens(config: Config, lengths: Lengths, rows: int, quoted: float) -> RoleTokens:
    output = max(1.0, lengths.output * config.rollout.max_new_tokens)
    prompt = min(lengths.question + quoted * output, config.rules.max_prompt_tokens)
    return RoleTokens(rows, prompt, output)


def _pace(config: Config, gpu: Gpu, roles: Mapping[str, RoleTokens]) -> float:
    """Output tokens per second: a decoding step reads the weights and the rows' keys and values."""
    size, number = sizes(config), 4 if config.model.dtype == "float32" else 2
    rows = sum(role_tokens.rows for role_tokens in roles.values())
    mean = (
        sum(
            role_tokens.rows * (role_tokens.prompt + role_tokens.output / 2)
            for role_tokens in roles.values()
        )
        / rows
    )
    row = number * size.cached * mean
    held = memory(config, gpu).rows
    if held is None:
        together = float(sampled_together(config, gpu))
    else:
        fits = held * (config.rules.max_prompt_tokens + config.rollout.max_new_tokens) / mean
        together = max(1.0, min(config.rollout.vllm.rows, fits, sampled_together(config, gpu)))
    step = (number * size.base + together * row) / (gpu.bandwidth * 1e12 * gpu.reading)
    return together / step
