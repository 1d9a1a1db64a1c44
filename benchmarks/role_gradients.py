"""What role gradients cost: a LoRA training step with and without the probe.

``python -m benchmarks.role_gradients [--only tiny] [--rounds 5]`` runs all variants in turn on the
same Qwen3 model in one process, round after round, and compares each with the plain step of its own
round. The clock is CPU time of the one thread, because the machine may be shared; the second plain
step of a round shows how much of a difference is noise. Beside it stands the arithmetic floor of
one more weight gradient per LoRA layer, 2r / 3d of a step. Results go to ``benchmarks/out/``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor, nn
from transformers import Qwen3Config, Qwen3ForCausalLM

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.role_ordered import RoleOrderedGradients
from roledrift.workflow import VOTING

OUT = Path(__file__).parent / "out" / "role_gradients.json"
PLACES = (("generator", 0), ("generator", 1), ("generator", 2), ("aggregator", 0))
Labels = tuple[tuple[list[str], list[int]], ...]


@dataclass(frozen=True)
class Size:
    """A model, its LoRA rank, and micro-batches of an even number of rows."""

    name: str
    hidden: int
    layers: int
    tokens: int
    rank: int
    rounds: int
    micro_batches: int = 2
    vocabulary: int = 1024
    rows: int = 2


SIZES = (
    Size("tiny r16", hidden=64, layers=2, tokens=64, rank=16, rounds=40),
    Size("tiny r64", hidden=64, layers=2, tokens=64, rank=64, rounds=40),
    Size("mid r16", hidden=512, layers=8, tokens=512, rank=16, rounds=5),
    Size("mid r64", hidden=512, layers=8, tokens=512, rank=64, rounds=5),
)
# Shaped like Qwen3-0.6B, random weights, bf16: only where there is a GPU.
_QWEN: dict[str, Any] = {"hidden": 1024, "layers": 28, "tokens": 2048, "vocabulary": 151_936}
GPU_SIZES = (
    Size("0.6b r16, 2 rows", **_QWEN, rank=16, rounds=5),
    Size("0.6b r64, 2 rows", **_QWEN, rank=64, rounds=5),
    Size("0.6b r64, 8 rows", **_QWEN, rank=64, rounds=5, rows=8),
)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def clock() -> float:
    """CPU seconds of this process; on a GPU wall seconds after everything queued has run."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def model_of(size: Size) -> nn.Module:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=3 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=size.hidden // 8,
    )
    lora = LoraConfig(r=size.rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model: nn.Module = get_peft_model(Qwen3ForCausalLM(config), lora)  # type: ignore[no-untyped-call]
    dtype = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32
    return model.to(device=DEVICE, dtype=dtype).train()


@dataclass
class Step:
    """One optimizer step over fixed tokens."""

    size: Size

    def __post_init__(self) -> None:
        self.model = model_of(self.size)
        weights = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-5)
        shape = (self.size.micro_batches, self.size.rows, self.size.tokens)
        self.ids = torch.randint(self.size.vocabulary, shape).to(DEVICE)

    def backward(self, ids: Tensor) -> None:
        """Forward and backward of one micro-batch."""
        logits = self.model(input_ids=ids, use_cache=False).logits[:, :-1]
        logp = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])
        (-logp.mean() / self.size.micro_batches).backward()

    def finish(self) -> None:
        """The optimizer step."""
        self.optimizer.step()
        self.optimizer.zero_grad()

    def plain(self) -> float:
        """CPU seconds of a step that nobody watches."""
        begin = clock()
        for ids in self.ids:
            self.backward(ids)
        self.finish()
        return clock() - begin

    def probed(self, labels: Labels, *, idle: bool = False, halves: bool = False) -> float:
        """CPU seconds of a step with a probe attached; ``idle``: in a step it does not measure."""
        probe = RoleGradientProbe(VOTING, every=2, halves=halves)
        probe.attach(self.model)
        if idle:
            probe.drain_gradients()
        begin = clock()
        for ids, (role, slot) in zip(self.ids, labels, strict=True):
            many = len(ids) // 2
            prompt = [0] * many + [1] * many
            with probe.groups(np.repeat(role, many), np.repeat(slot, many), prompt=prompt):
                self.backward(ids)
        self.finish()
        records = probe.drain_gradients()
        seconds = clock() - begin
        assert bool(records) != idle, "measured exactly when it should"
        probe.detach()
        return seconds

    def ordered(self) -> float:
        """CPU seconds of a step whose gradients are read after each micro-batch."""
        ordered_gradients = RoleOrderedGradients(VOTING, every=1)
        ordered_gradients.attach(self.model)
        begin = clock()
        for ids, (role, slot) in zip(self.ids, PLACES, strict=False):
            self.backward(ids)
            ordered_gradients.mark(role, slot)
        self.finish()
        ordered_gradients.drain_gradients()
        return clock() - begin


def variants(step: Step) -> dict[str, Callable[[], float]]:
    mixed: Labels = ((["generator"] * 2, [0, 1]), (["generator", "aggregator"], [2, 0]))
    alone: Labels = ((["generator"] * 2, [0, 0]), (["aggregator"] * 2, [0, 0]))
    return {
        "plain": step.plain,
        "plain again (noise)": step.plain,
        "tap fold, mixed micro-batches": lambda: step.probed(mixed),
        "tap fold, mixed, halved by problem": lambda: step.probed(mixed, halves=True),
        "tap fold, a step not measured": lambda: step.probed(mixed, idle=True),
        "tap fold, one group per micro-batch": lambda: step.probed(alone),
        "tap fold, one slot, halved by problem": lambda: step.probed(alone, halves=True),
        "role-ordered fold": step.ordered,
    }


def compare(size: Size, rounds: int) -> dict[str, object]:
    step = Step(size)
    runs = variants(step)
    step.plain()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds):
        # The order alternates, so that no variant always follows the same other one.
        for name in list(runs) if number % 2 else list(runs)[::-1]:
            seconds[name].append(runs[name]())
    over = {
        name: statistics.median(
            watched / plain - 1 for watched, plain in zip(times, seconds["plain"], strict=True)
        )
        for name, times in seconds.items()
    }
    measured, idle = over["tap fold, mixed micro-batches"], over["tap fold, a step not measured"]
    over["tap fold, mixed, every 4th step (computed)"] = (measured + 3 * idle) / 4
    return {
        **asdict(size),
        "rounds": rounds,
        "plain_ms": 1e3 * statistics.median(seconds["plain"]),
        "floor": 2 * size.rank / (3 * size.hidden),
        "overhead": {name: value for name, value in over.items() if name != "plain"},
        "median_ms": {name: 1e3 * statistics.median(times) for name, times in seconds.items()},
    }


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="run only the sizes whose names start with this")
    parser.add_argument("--rounds", type=int, help="rounds per size")
    wanted = parser.parse_args(arguments)
    torch.set_num_threads(1)
    results = []
    if DEVICE.type == "cpu":
        print("no GPU here: the sizes of Qwen3-0.6B are left out")
    for size in GPU_SIZES if DEVICE.type == "cuda" else SIZES:
        if wanted.only and not size.name.startswith(wanted.only):
            continue
        row = compare(size, wanted.rounds or size.rounds)
        results.append(row)
        print(f"{size.name}: plain {row['plain_ms']:.1f} ms CPU, floor {row['floor']:.1%}")
        for name, value in dict(row["overhead"]).items():  # type: ignore[call-overload]
            print(f"  {value:+7.2%}  {name}", flush=True)
    machine = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": 1,
        "device": str(DEVICE),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps({**machine, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
