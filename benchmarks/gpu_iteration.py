"""Iterations of the reference trainer on a GPU: beside the planner, and the price of the monitor.

``make bench-gpu`` runs Voting with two policies on random weights of Qwen3-0.6B's shapes: bfloat16,
rank 64, coins for rewards because such a model solves nothing. Plain and monitored iterations take
turns in one process. Beside the parts of a plain iteration stands what the planner gives for them,
and the assumptions that would have made it right: the share of the GPU's operations that training
reached, and the output tokens per second that were sampled.

``python -m benchmarks.gpu_iteration --size tiny`` runs the same code on any machine; its numbers
mean nothing. Without a GPU and without ``--size`` it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers.utils import logging

from benchmarks.chat_model import make_chat_model
from reference_trainer.config import Config
from reference_trainer.grid import load_source
from reference_trainer.observation import Observation
from reference_trainer.planning.gpu import GIB, Gpu, Lengths
from reference_trainer.planning.plan import Plan, plan
from reference_trainer.planning.shapes import model_config
from reference_trainer.setup import Setup, hand_over, prepare
from reference_trainer.trainer import _iterate, _totals

OUT = Path(__file__).parent / "out" / "gpu_iteration.json"
ROWS = Path(__file__).parents[1] / "tests" / "reference_trainer" / "tasks" / "rows"
SKIPPED = 1
"""Iterations of each kind that are not counted: the first one allocates and compiles."""

SIZES: dict[str, dict[str, Any]] = {
    "qwen3-0.6b": {"problems": 4, "copies": 8, "max_new_tokens": 512},
    "tiny": {"problems": 2, "copies": 2, "max_new_tokens": 6},
}
SHORT = 64
"""Most tokens of an output that the engine `transformers` samples: it takes 50 ms for each."""


def settings(folder: Path, size: str, *, monitored: bool) -> Config:
    """The run: a cell of the paper's grid, with fewer and shorter rows."""
    gpu = torch.cuda.is_available()
    flash = gpu and find_spec("flash_attn") is not None
    vllm = gpu and find_spec("vllm") is not None
    tiny = size == "tiny"
    rollout = SIZES[size] | {"engine": "vllm" if vllm else "transformers"}
    if not vllm:
        rollout["max_new_tokens"] = min(rollout["max_new_tokens"], SHORT)
    return load_source(
        "paper/voting-ip-math-0.6B",
        {
            "model": {
                "path": str(folder),
                "dtype": "float32" if tiny else "bfloat16",
                "attention": "flash_attention_2" if flash else "sdpa",
            },
            "lora": {"rank": 4} if tiny else {},
            "task": {"source": str(ROWS / "dapo_math.jsonl")},
            "rollout": rollout,
            "rules": {"max_prompt_tokens": 2048},
            "train": {"microbatch": 8, "packed": flash},
            "stress": {"kind": "reward_noise", "share": 1.0},
            "validation": {"every": 0, "problems": 2},
            "monitor": {
                "enabled": monitored,
                "gradients_every": 1,
                "options": {"budget": 0.0, "sampling": {"canaries": 0}},
            },
        },
    )


def iteration(setup: Setup, step: int, observation: Observation | None) -> dict[str, float]:
    """The seconds of one iteration and its parts, on the device too."""
    _wait()
    start = time.perf_counter()
    report, rescored = _iterate(setup, step, observation)
    if observation is not None:
        observation.end_step(step, rescored, _totals(report))
    _wait()
    return {**report.seconds, "all": time.perf_counter() - start}


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measured(size: str, *, steps: int, scratch: Path) -> dict[str, Any]:
    """Plain and monitored iterations in turns, and the plan of a plain one."""
    shape: dict[str, Any] = {}
    if size != "tiny":
        published = load_source("paper/voting-ip-math-0.6B", {})
        shape = model_config(published).to_diff_dict()
        shape = {name: value for name, value in shape.items() if not name.endswith("_token_id")}
        shape["initializer_range"] = 0.02
    folder = make_chat_model(scratch / "Qwen3-random", shape=shape)
    setup = prepare(settings(folder, size, monitored=True), cache=scratch)
    hand_over(setup, setup.bank.policies, done=0)
    observation = Observation(setup.config, setup.stage, setup.bank, out=scratch / "run")
    seconds: dict[str, list[dict[str, float]]] = {"plain": [], "monitored": []}
    for step in range(1, 2 * steps + 1):
        watched = step % 2 == 0
        if not watched and torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        took = iteration(setup, step, observation if watched else None)
        seconds["monitored" if watched else "plain"].append(took)
    observation.close()
    medians = {
        f"{kind} {part}": statistics.median(
            iteration_seconds[part] for iteration_seconds in took[SKIPPED:]
        )
        for kind, took in seconds.items()
        for part in ("generation", "training", "all")
    }
    price = medians["monitored all"] / medians["plain all"]
    return {"engine": setup.config.rollout.engine, "seconds": medians, "price": price} | (
        _beside_plan(setup.config, medians)
    )


def _beside_plan(config: Config, seconds: dict[str, float]) -> dict[str, Any]:
    """What is planned for the longest outputs, and what was measured."""
    cuda = torch.cuda.is_available()
    memory = torch.cuda.get_device_properties(0).total_memory if cuda else 80 * GIB
    gpu = Gpu(memory)
    made: Plan = plan(config, gpu, Lengths(question=200, output=1.0))
    took = made.duration
    engine = made.memory.parts["update"].get("engine", 0)  # it allocates in a process of its own
    return {
        "planned_update_gib": (made.memory.total("update") - engine) / GIB,
        "allocated_gib": torch.cuda.max_memory_allocated() / GIB if cuda else None,
        "planned_seconds": dict(took.seconds),
        "utilisation": took.operations / seconds["plain training"] / (gpu.tflops * 1e12),
        "tokens_per_second": took.sampled / seconds["plain generation"],
        "planned_tokens_per_second": took.tokens_per_second,
    }


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=sorted(SIZES))
    parser.add_argument("--steps", type=int, default=4, help="iterations of each kind")
    options = parser.parse_args(list(arguments))
    if options.size is None and not torch.cuda.is_available():
        print("no GPU here: nothing measured (--size tiny runs the same code on the CPU)")
        return
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    size = options.size or "qwen3-0.6b"
    with tempfile.TemporaryDirectory() as scratch:
        result = measured(size, steps=options.steps, scratch=Path(scratch))
    for name, value in result.items():
        print(f"{name}: {value if not isinstance(value, float) else round(value, 4)}")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps({"size": size} | result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
