"""The grid at the paper's scale: settings, memory and launch commands, to plan with.

Settings are those of Table 7 of arXiv 2605.24202 with the lengths of its released code, in
``presets/grids/paper.toml``, or all that the released code does, in ``paper-code.toml``. They are
what ``train`` runs, by the name of a cell; at this scale it has not been run, which :data:`NOT_RUN`
says wherever the grid is printed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from reference_trainer.config import Config
from reference_trainer.grid import Cell, load_source
from reference_trainer.paper_compat import PaperCompat

SCALES = ("0.6B", "1.7B", "4B")
GRIDS = ("paper", "paper-code")

NOT_RUN = (
    "not run at this scale: the same code was run with tiny models on a CPU, and the memory is an "
    "estimate"
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a Qwen3 model, from its published configuration; embeddings are tied.

    Attributes:
        hidden: Width.
        layers: Number of layers.
        feed_forward: Width of the gated feed-forward part.
        heads: Query heads.
        kv_heads: Key-value heads.
        head: Size of a head.
        vocabulary: Number of tokens.
    """

    hidden: int
    layers: int
    feed_forward: int
    heads: int
    kv_heads: int = 8
    head: int = 128
    vocabulary: int = 151_936

    @property
    def linears(self) -> tuple[tuple[int, int], ...]:
        """Inputs and outputs of every linear map of one layer."""
        wide, narrow = self.heads * self.head, self.kv_heads * self.head
        h, f = self.hidden, self.feed_forward
        return ((h, wide), (h, narrow), (h, narrow), (wide, h), (h, f), (h, f), (f, h))

    @property
    def parameters(self) -> int:
        """Weights of the base model, norms included."""
        norms = 2 * self.hidden + 2 * self.head
        layer = sum(a * b for a, b in self.linears) + norms
        return self.layers * layer + self.vocabulary * self.hidden + self.hidden

    def lora(self, rank: int) -> int:
        """Weights of one adapter on all linear maps: ``rank * (inputs + outputs)`` each."""
        return self.layers * sum(rank * (a + b) for a, b in self.linears)


SHAPES = {
    "0.6B": Shape(1024, 28, 3072, 16),
    "1.7B": Shape(2048, 28, 6144, 16),
    "4B": Shape(2560, 36, 9728, 32),
}


@dataclass(frozen=True, slots=True)
class Lengths:
    """Token limits and rounds of a cell.

    Attributes:
        prompt: Longest prompt.
        response: Longest output.
        rounds: Most solutions of Eval-Opt.
    """

    prompt: int
    response: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device that trains and samples, nothing sharded.

    Attributes:
        weights: Base model in bfloat16, twice: for training and in the rollout engine.
        adapters: LoRA weights of all policies in float32, and in bfloat16 in the engine.
        optimizer: Gradients of the active adapter and two moments of every adapter, float32.
        activations: One sequence of full length with gradient checkpointing: layer inputs, one
            layer recomputed, and float32 logits with their gradient at the output positions.
        cache: Keys and values of ``sequences`` sequences of full length.
    """

    weights: int
    adapters: int
    optimizer: int
    activations: int
    cache: int

    @property
    def total(self) -> int:
        """Their sum; allocator slack, CUDA context and engine workspace come on top."""
        return self.weights + self.adapters + self.optimizer + self.activations + self.cache


def resolved(
    cell: Cell, overrides: Mapping[str, Any] | None = None, *, grid: str = "paper"
) -> Config:
    """The configuration of ``cell``; raises as :func:`~reference_trainer.grid.load_source`."""
    return load_source(f"{grid}/{cell.name}", overrides or {})


def lengths(cell: Cell) -> Lengths:
    """Limits of the released code's training runs; they are the same in both grids."""
    config = resolved(cell)
    rules = config.rules
    return Lengths(rules.max_prompt_tokens, config.rollout.max_new_tokens, rules.rounds)


def policies(cell: Cell) -> int:
    """Number of adapters."""
    return len(set(resolved(cell).routed().policies))


def estimate(cell: Cell, *, rank: int = 64, sequences: int = 32) -> Memory:
    """Memory of ``cell``; ``sequences`` are sampled at the same time at full length."""
    shape, limit = SHAPES[cell.scale], lengths(cell)
    adapter, count = shape.lora(rank), policies(cell)
    tokens = limit.prompt + limit.response
    layer = sum(outputs for _, outputs in shape.linears) + 2 * shape.hidden
    activations = 2 * tokens * (shape.layers * shape.hidden + layer)
    logits = 2 * 4 * limit.response * shape.vocabulary
    per_token = 2 * 2 * shape.layers * shape.kv_heads * shape.head
    return Memory(
        weights=2 * 2 * shape.parameters,
        adapters=(4 + 2) * adapter * count,
        optimizer=4 * adapter + 8 * adapter * count,
        activations=activations + logits,
        cache=per_token * tokens * sequences,
    )


def settings(config: Config) -> dict[str, str]:
    """What all cells have in common, in words."""
    train, adam, clip, rollout = config.train, config.train.adam, config.train.clip, config.rollout
    return {
        "optimizer": f"AdamW, lr {adam.lr:g}, betas .9/.999, weight decay {adam.weight_decay:g}, "
        f"gradient norm at most {adam.max_grad_norm:g}",
        "schedule": f"{adam.warmup_steps} iterations of linear warm-up, then {adam.schedule}",
        "clip": f"low {clip.low:g}, high {clip.high:g}, dual {clip.dual:g}",
        "loss": f"{train.aggregation}, {train.epochs} epoch(s), no KL term",
        "lora": f"rank {config.lora.rank}, alpha {config.lora.alpha}, dropout "
        f"{config.lora.dropout:g}, all linear layers, float32 on {config.model.dtype}",
        "rollout": f"{rollout.engine}, {rollout.problems} problems x {rollout.copies} copies, "
        f"temperature {rollout.temperature:g}, top-p 1",
        "mini-batch": f"{train.minibatch} {train.minibatch_counts}, {train.microbatch} at a time",
        "paper_compat": ", ".join(_on(config.paper_compat)) or "nothing on",
        "length": f"{train.steps} iterations, validation every {config.validation.every}, "
        f"checkpoint every {config.checkpoint.every}",
    }


def _on(compat: PaperCompat) -> list[str]:
    default = asdict(PaperCompat())
    return [name for name, value in asdict(compat).items() if value != default[name]]


def launch(
    cell: Cell, *, seed: int, overrides: Mapping[str, Any] | None = None, grid: str = "paper"
) -> str:
    """The command of one cell: one process, one device."""
    name = f"{cell.name}-seed{seed}"
    sets = {"name": name, "seed": seed, **dict(_flat(overrides or {}))}
    flags = " ".join(shlex.quote(f"--set={key}={_text(value)}") for key, value in sets.items())
    return (
        f"accelerate launch --num_processes 1 -m reference_trainer train {grid}/{cell.name} "
        f"{flags} --out runs/{grid}/{name} --resume"
    )


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def describe(
    cell: Cell, *, seed: int, overrides: Mapping[str, Any] | None = None, grid: str = "paper"
) -> list[str]:
    """Lines about one cell: settings, memory, command."""
    limit, memory, shape = lengths(cell), estimate(cell), SHAPES[cell.scale]
    rounds = f", at most {limit.rounds} rounds" if cell.workflow == "eval_opt" else ""
    parts = ("weights", "adapters", "optimizer", "activations", "cache")
    sizes = ", ".join(f"{name} {getattr(memory, name) / 2**30:.1f}" for name in parts)
    return [
        f"{cell.name}-seed{seed}",
        f"  Qwen3-{cell.scale} ({shape.parameters / 1e9:.2f} B), {policies(cell)} adapter(s) of "
        f"{shape.lora(64) / 1e6:.0f} M, prompt {limit.prompt}, output {limit.response}{rounds}",
        f"  GiB: {sizes}; total {memory.total / 2**30:.1f}",
        f"  {launch(cell, seed=seed, overrides=overrides, grid=grid)}",
    ]
