"""The grid at the paper's scale: settings, memory and launch commands, to plan with.

Settings are those of Table 7 of arXiv 2605.24202 with the lengths of its released code. This
trainer warms up its own tiny models and does not load the paper's base models and data sets, so the
configurations are printed and never run; :data:`NOT_RUNNABLE` says so wherever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reference_trainer.grid import ROUTINGS, Cell
from roledrift import Workflow

SCALES = ("0.6B", "1.7B", "4B")

NOT_RUNNABLE = (
    "these are plans: this trainer builds tiny base models of its own, it does not load the real "
    "ones, and it has not been run at this scale"
)

SETTINGS: dict[str, Any] = {
    "optimizer": "AdamW, lr 2e-5, betas .9/.999, weight decay .01, gradient norm at most 1.0",
    "schedule": "15 iterations of linear warm-up, then cosine",
    "clip": "low .2, high .28, dual 3.0",
    "loss": "seq-mean-token-mean, one epoch, no KL term",
    "lora": "rank 64, alpha 32, dropout 0, all linear layers",
    "rollout": "64 problems x 8 copies, temperature .7, top-p 1",
    "mini-batch": "64 problems (512 rows)",
    "length": "500 iterations, validation every 10, checkpoint every 5",
}
"""What all cells have in common."""


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


def lengths(cell: Cell) -> Lengths:
    """Limits of the released code's training runs."""
    if cell.task == "code":
        prompt = 4096 if cell.workflow == "single" else 10_240
        return Lengths(prompt, 2048, 2)
    prompts = {"single": 15_360, "eval_opt": 30_720}
    return Lengths(prompts.get(cell.workflow, 20_480), 5120, 3)


def policies(cell: Cell) -> int:
    """Number of adapters."""
    shape = Workflow.of(cell.workflow)
    return (
        len(set(shape.policies)) if ROUTINGS.get(cell.routing) != "isolated" else len(shape.roles)
    )


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


def launch(cell: Cell, *, seed: int) -> str:
    """The command of one cell, one process per device."""
    return (
        f"accelerate launch --mixed_precision bf16 -m reference_trainer train "
        f"configs/{cell.name}-seed{seed}.json --out runs/paper/{cell.name}-seed{seed} --resume"
    )


def describe(cell: Cell, *, seed: int) -> list[str]:
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
        f"  {launch(cell, seed=seed)}",
    ]
