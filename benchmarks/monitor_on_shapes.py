"""What the monitor costs at the paper's scale, counted on shapes: no weights, no GPU.

``python -m benchmarks.monitor_on_shapes`` counts floating-point operations for Qwen3 0.6B to 4B at
rank 64 and rows of up to 25,600 tokens. The trainer's forward and backward run on tensors without
storage. Role gradients take one product per weight of an adapter, ``2 * tokens * weights``
operations; that this is what the real probe does is counted first, on a small model with storage.

Canary texts are two problems that are played again with every record. In a call of their own, each
of their tokens waits until the weights have been read once; beside the rollouts they are a few
tokens more. Their seconds are estimates under the planner's assumptions of an H100. Results go to
``benchmarks/out/``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from reference_trainer.grid import load_source
from reference_trainer.planning.duration import duration
from reference_trainer.planning.episode import spans_per_iteration
from reference_trainer.planning.gpu import Gpu, Lengths, memory_of
from reference_trainer.planning.shapes import sizes, trained
from reference_trainer.planning.step_on_shapes import Meter, held, operations
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from roledrift import SINGLE, RoleGradientProbe

OUT = Path(__file__).parent / "out" / "monitor_on_shapes.json"
SCALES = ("0.6B", "1.7B", "4B")
LENGTHS = (2_560, 8_192, 25_600)
CANARIES = 2
"""Problems that are followed by default."""


def probe_operations(*, rank: int, tokens: int) -> tuple[int, int]:
    """Operations that the real probe adds to a backward of a small model, and what they should be.

    Returns:
        As counted, and ``2 * tokens * weights`` of the adapter.
    """
    counts = []
    for watched in (False, True):
        torch.manual_seed(0)
        small = Qwen3Config(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            intermediate_size=64,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            pad_token_id=0,
        )
        base: Any = Qwen3ForCausalLM(small)  # type: ignore[no-untyped-call]
        lora = LoraSettings(rank)
        bank = AdapterBank(base, ("shared",), lora=lora, adam=AdamSettings(), seed=0)
        probe = RoleGradientProbe(SINGLE, every=1, reduction="sum", halves=True)
        if watched:
            probe.attach(bank.model, adapters=bank.adapters)
            probe.set_groups(np.zeros(2, int), np.zeros(2, int), prompt=np.array([0, 1]))
        with bank.mode(training=True), Meter(held(bank)) as meter:
            ids = torch.arange(2 * tokens).reshape(2, tokens) % 64
            hidden = base.model(input_ids=ids, use_cache=False).last_hidden_state
            torch.autograd.backward(hidden.sum())
        counts.append(meter.operations)
        weights = sum(parameter.numel() for parameter in bank.parameters_of("shared"))
    return counts[1] - counts[0], 2 * 2 * tokens * weights


def gradient_shares(scale: str) -> dict[int, float]:
    """By row length: operations of role gradients over those of the trainer's own update."""
    config = load_source(f"paper/voting-ip-math-{scale}", {})
    shares = {}
    for tokens in LENGTHS:
        forward, backward = operations(trained(config), tokens, min(5120, tokens // 2))
        update = 2 * forward + backward  # old log-probabilities are computed by the trainer
        shares[tokens] = 2 * tokens * sizes(config).adapter / update
    return shares


def canary_seconds(scale: str) -> dict[str, float]:
    """Seconds per iteration: of an iteration, of canaries on their own, and beside the rollouts."""
    config = load_source(f"paper/voting-ip-math-{scale}", {})
    gpu, lengths = Gpu(memory_of("80GB")), Lengths()
    work = duration(config, gpu, lengths)
    output = lengths.output * config.rollout.max_new_tokens
    reading = 2 * sizes(config).base / (gpu.bandwidth * 1e12 * gpu.reading)
    phases = len(spans_per_iteration(config))  # Voting asks every role once
    episodes = config.rollout.problems * config.rollout.copies
    return {
        "iteration": work.total,
        "alone": phases * output * reading,
        "beside": work.seconds["sampling"] * CANARIES / episodes,
    }


def main() -> None:
    """Print and write the tables."""
    counted, expected = probe_operations(rank=8, tokens=48)
    print(f"the probe's operations, counted over expected: {counted / expected:.4f}")
    result: dict[str, Any] = {"counted_over_expected": counted / expected, "scales": {}}
    for scale in SCALES:
        shares, seconds = gradient_shares(scale), canary_seconds(scale)
        result["scales"][scale] = {"role_gradients": shares, "canaries": seconds}
        cells = " | ".join(f"{share:.2%}" for share in shares.values())
        print(
            f"| {scale} | {cells} | {seconds['alone']:.1f} s | {seconds['beside']:.1f} s | "
            f"{seconds['iteration']:.0f} s |"
        )
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
