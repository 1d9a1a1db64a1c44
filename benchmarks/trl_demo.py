"""What watching costs the shipped TRL demo: ``examples/trl_grpo_roles.py`` with and without it.

``python -m benchmarks trl_demo [--pairs 5] [--steps 30] [--tier business]`` trains the demo in turn
with and without the callback in one process, and compares the median CPU time of a step, once over
all steps and once from the eleventh on, when the budget has had its say. CPU time, because the
machine may be shared; the second plain training of a pair shows the noise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback
from trl import GRPOTrainer

from examples import trl_grpo_roles as demo  # noqa: TID251 - benchmarks are in no wheel either
from roledrift import RoleDriftCallback
from roledrift.store.reader import open_run

OUT = Path(__file__).parent / "out" / "trl_demo.json"
SETTLED = 10


class _Clock(TrainerCallback):
    """CPU time at the end of each step; the last of the callbacks."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self.times.append(time.process_time())

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.times.append(time.process_time())

    def steps(self) -> list[float]:
        """Seconds of each step but the first, which warms up."""
        pairs = zip(self.times[1:-1], self.times[2:], strict=True)
        return [after - before for before, after in pairs]


def train(out: Path, callbacks: Sequence[TrainerCallback], steps: int) -> GRPOTrainer:
    trainer = demo.trainer(out, steps, [*callbacks])
    trainer.train()
    return trainer


def seconds(steps: int, config: dict[str, Any] | None) -> tuple[list[float], dict[str, float]]:
    """CPU seconds of each step, and what the run says it cost, in milliseconds per step."""
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        own = [] if config is None else [RoleDriftCallback("voting", config=config)]
        train(Path(folder), [*own, clock], steps)
        if config is None:
            return clock.steps(), {}
        records = open_run(Path(folder) / "roledrift").steps()
        names = {name for record in records for name in record.cost_ms}
        cost = {
            name: sum(record.cost_ms.get(name, 0.0) for record in records) / steps
            for name in sorted(names)
        }
        for record in records:
            if "schedule" in record.labels:
                print(f"  step {record.step}: {record.labels['schedule']}", flush=True)
    return clock.steps(), cost


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--tier", default="business")
    asked = parser.parse_args(arguments)
    torch.set_num_threads(1)
    ways: dict[str, dict[str, Any] | None] = {
        "plain": None,
        "watched": {"tier": asked.tier},
        "plain again": None,
    }
    seconds(SETTLED + 2, ways["watched"])
    times_of: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    cost: dict[str, float] = {}
    for number in range(asked.pairs):
        for name in list(ways) if number % 2 else list(ways)[::-1]:
            times, columns = seconds(asked.steps, ways[name])
            times_of[name].append((statistics.mean(times), statistics.mean(times[SETTLED:])))
            cost = columns or cost
    results: dict[str, Any] = {"tier": asked.tier, "pairs": asked.pairs, "cost_ms": cost}
    for place, what in enumerate(("all steps", f"after {SETTLED} steps")):
        for name in ("plain again", "watched"):
            pairs = zip(times_of[name], times_of["plain"], strict=True)
            ratio = statistics.median(watched[place] / plain[place] for watched, plain in pairs)
            results[f"{name}, {what}"] = ratio
            print(f"{name}, {what}: {ratio:.3f}")
    plain = statistics.median(plain[1] for plain in times_of["plain"])
    results["plain_ms"] = 1e3 * plain
    print(f"plain step: {1e3 * plain:.1f} ms; the monitor's own account: {cost}")
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
