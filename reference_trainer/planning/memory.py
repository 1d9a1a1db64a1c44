"""Memory of one device, part by part, in the three moments of an iteration that need most.

Activations and logits are those of the trainer's own step on tensors without storage
(:mod:`reference_trainer.planning.step_on_shapes`); everything else is a number of weights or rows
times its bytes. Rows are taken at their full length: prompts up to ``rules.max_prompt_tokens``,
outputs up to ``rollout.max_new_tokens``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_trainer.config import Config
from reference_trainer.planning.episode import spans_per_iteration
from reference_trainer.planning.gpu import GIB, Gpu
from reference_trainer.planning.shapes import Sizes, sizes, trained
from reference_trainer.planning.step_on_shapes import MicroShape, StepCost, step_cost
from roledrift.capture.fold import BUDGET_BYTES, STAGE_BYTES

MOMENTS = ("update", "scoring", "sampling")

_BYTES = {"float32": 4, "bfloat16": 2}
_FLOAT = 4

_WORKSPACE = 2 * GIB
"""What vLLM needs for a forward of its own and for captured graphs, beside weights and cache."""

_ROW_TOKEN = 8
_ROW_OUTPUT = 8 + 8 + 1 + 4 + 4
"""Bytes per token and per output of a collated row: ids; sources, targets, mask, two scores."""

_DRAW = 4 + 4 + 4 + 4 + 8
"""Bytes per row and token of the vocabulary while one token is drawn: logits, divided, their
log-softmax, its exponential, and sums of that in double precision."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device.

    Attributes:
        parts: By moment (:data:`MOMENTS`), then by part.
        rows: Sequences of full length whose keys and values fit into the engine's share; None for
            an engine without a share of its own.
    """

    parts: Mapping[str, Mapping[str, int]]
    rows: float | None

    def total(self, moment: str) -> int:
        """Bytes of all parts of a moment."""
        return sum(self.parts[moment].values())

    @property
    def peak(self) -> int:
        """Bytes of the moment that needs most."""
        return max(map(self.total, self.parts))

    @property
    def tightest(self) -> str:
        """The moment that needs most."""
        return max(self.parts, key=self.total)


def longest_row(config: Config) -> int:
    """Most tokens of a prompt and its output."""
    return config.rules.max_prompt_tokens + config.rollout.max_new_tokens


def largest_micro_batch(config: Config, *, gradients: bool = True) -> MicroShape:
    """The forward that needs most: as many full rows as the settings allow.

    Without ``gradients``, that of rows that are scored again after an update; they are padded.
    """
    train, tokens = config.train, longest_row(config)
    rows = train.microbatch
    if train.microbatch_tokens:
        rows = max(1, min(rows, train.microbatch_tokens // tokens))
    if not gradients:
        rows = max(1, min(rows, config.monitor.rescore_rows))
    outputs = rows * config.rollout.max_new_tokens
    if not (train.packed and gradients):
        return MicroShape(rows, tokens, outputs, gradients=gradients)
    masked = config.model.attention != "flash_attention_2"
    return MicroShape(1, rows * tokens, outputs, masked=masked)


def memory(config: Config, gpu: Gpu) -> Memory:
    """Memory of a run on one of the devices of ``gpu``.

    Raises:
        SettingsError: If the shapes of the base model are not known.
    """
    size, model = sizes(config), trained(config)
    policies = len(set(config.routed().policies))
    number = _BYTES[config.model.dtype]
    step = step_cost(model, largest_micro_batch(config))
    once = step_cost(model, largest_micro_batch(config, gradients=False))
    always = {
        "adapters": _FLOAT * size.adapter * policies,
        "moments of the optimizer": _moments(config) * _FLOAT * size.adapter * policies,
    }
    complete = number * size.base
    engine, held = _engine(config, gpu, size, policies)
    update = {
        "base weights": _sharded(config, gpu, size, number),
        **always,
        "gradients": _FLOAT * size.adapter,
        "rows": _rows(config, gpu),
        **_activations(step),
        "monitor": _monitor(config, size),
    }
    scoring = {"base weights": complete, **always, "activations": once.peak} | _fused(config, size)
    sampling = {"base weights": complete, **always}
    if config.rollout.engine == "vllm":
        for moment in (update, scoring, sampling):
            moment["engine"] = engine
        if config.rollout.vllm.sleep:  # weights are in the host's memory, keys and values are gone
            update["engine"] = _WORKSPACE
    else:
        sampling |= _fused(config, size) | _sampling(config, gpu, size)
    return Memory({"update": update, "scoring": scoring, "sampling": sampling}, held)


def _activations(step: StepCost) -> dict[str, int]:
    name = "logits, a chunk at a time" if step.head >= step.layer else "one layer's backward"
    return {"activations": step.stored, name: max(step.head, step.layer)}


def _moments(config: Config) -> int:
    return 2 if config.train.adam.rule == "adamw" else 0


def _sharded(config: Config, gpu: Gpu, size: Sizes, number: int) -> int:
    """Base weights during an update: in parts, two layers are whole at a time."""
    if config.parallel.mode == "ddp" or gpu.count == 1:
        return number * size.base
    return number * (size.tied + (size.base - size.tied) // gpu.count + 2 * size.largest)


def _rows(config: Config, gpu: Gpu) -> int:
    """The collated rows of the policy with the most of them."""
    workflow = config.routed()
    counts = dict.fromkeys(workflow.policies, 0)
    for role, spans in spans_per_iteration(config).items():
        counts[workflow.policy_of(role)] += spans.calls
    row = _ROW_TOKEN * longest_row(config) + _ROW_OUTPUT * config.rollout.max_new_tokens
    return max(counts.values()) * row * config.train.epochs // gpu.count


def _monitor(config: Config, size: Sizes) -> int:
    """Sums of role gradients, and one layer's product for every group of a micro-batch."""
    if not (config.monitor.enabled and config.monitor.gradients_every):
        return 0
    kept = BUDGET_BYTES + STAGE_BYTES * len(set(config.routed().policies))
    return kept + 2 * _FLOAT * config.lora.rank * size.broadest


def _fused(config: Config, size: Sizes) -> dict[str, int]:
    """Weights with the adapter added in; a base in lower precision computes without them."""
    if config.model.dtype != "float32":
        return {}
    return {"merged weights": _FLOAT * size.mapped}


def _engine(config: Config, gpu: Gpu, size: Sizes, policies: int) -> tuple[int, float | None]:
    """Bytes of vLLM's share of the device, and the rows of full length that its cache holds."""
    if config.rollout.engine != "vllm":
        return 0, None
    share = int(config.rollout.vllm.gpu_memory * gpu.memory)
    number = _BYTES[config.model.dtype]
    slots = (policies + 1) * size.adapter
    cache = share - number * (size.base + slots) - _WORKSPACE
    return share, max(0.0, cache / (number * size.cached * longest_row(config)))


def sampled_together(config: Config, gpu: Gpu) -> int:
    """Most rows that one device is asked for, or allowed to sample, at the same time."""
    asked = -(-max(spans.together for spans in spans_per_iteration(config).values()) // gpu.count)
    limit = config.rollout.max_rows if config.rollout.engine == "transformers" else 0
    return min(asked, limit) if limit else asked


def _sampling(config: Config, gpu: Gpu, size: Sizes) -> dict[str, int]:
    """What the engine ``transformers`` holds: it reads all prompts, then draws token by token."""
    rows, model = sampled_together(config, gpu), trained(config)
    prompts = MicroShape(rows, config.rules.max_prompt_tokens, rows, gradients=False)
    cache = _BYTES[config.model.dtype] * size.cached * rows * longest_row(config)
    return {
        "keys and values": cache,
        "reading prompts": step_cost(model, prompts).peak,
        "drawing tokens": _DRAW * rows * size.vocabulary,
    }
