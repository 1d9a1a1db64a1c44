"""What token statistics cost: a LoRA training step with and without them.

``python -m benchmarks.token_statistics [--only tiny]`` alternates steps with and without
``TokenCapture.add`` and ``drain`` on the same Qwen3 model in one process, so both see the same load
of the machine. It prints medians, their ratio, the time spent inside the capture itself, and the
processor time of ``add`` and ``drain``, which are the steadier numbers where the machine is shared.
Results go to ``benchmarks/out/``.
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

import torch
from peft import LoraConfig, get_peft_model
from torch import Tensor
from transformers import Qwen3Config, Qwen3ForCausalLM

from roledrift import VOTING, RoleBatch, TokenCapture

OUT = Path(__file__).parent / "out" / "token_statistics.json"


@dataclass(frozen=True)
class Size:
    """A model and a batch."""

    name: str
    hidden: int
    layers: int
    tokens: int
    spans: int = 4
    vocabulary: int = 1024
    repeats: int = 30


SIZES = (
    Size("tiny", hidden=64, layers=2, tokens=64),
    Size("hidden 512, 8 layers", hidden=512, layers=8, tokens=512, repeats=7),
)


def model_of(size: Size) -> torch.nn.Module:
    config = Qwen3Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=3 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=size.hidden // 8,
    )
    lora = LoraConfig(r=8, target_modules="all-linear", task_type="CAUSAL_LM")
    model: torch.nn.Module = get_peft_model(Qwen3ForCausalLM(config), lora)  # type: ignore[no-untyped-call]
    return model.train()


@dataclass(frozen=True)
class Spent:
    """Seconds: of the clock, and of the processor in ``add`` and in ``drain``."""

    wall: float = 0.0
    add: float = 0.0
    drain: float = 0.0

    @classmethod
    def now(cls) -> Spent:
        """Where both clocks are."""
        return cls(time.perf_counter(), time.process_time())

    def since(self, begin: Spent) -> Spent:
        """How far they went; the processor's share is under ``add``."""
        return Spent(self.wall - begin.wall, self.add - begin.add)


@dataclass
class Step:
    """One GRPO step on fixed tokens; the log-probabilities go to the capture if there is one."""

    size: Size
    capture: TokenCapture

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        size = self.size
        self.model = model_of(size)
        weights = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = torch.optim.AdamW(weights, lr=1e-5)
        shape = (size.spans, size.tokens)
        self.ids = torch.randint(size.vocabulary, (size.spans, size.tokens + 1))
        self.mask = torch.rand(shape) < 0.9
        self.advantage = torch.randn(size.spans)
        self.old = -torch.rand(shape) - 6.5
        self.entropy = torch.rand(shape)
        self.role = torch.arange(size.spans) // 3 % 2

    def run(self, watched: bool) -> Spent:
        """Train one step; returns the time spent in the capture."""
        logits = self.model(input_ids=self.ids[:, :-1]).logits
        logp = logits.log_softmax(-1).gather(-1, self.ids[:, 1:, None])[..., 0]
        ratio = (logp - logp.detach()).exp()
        loss = -(ratio * self.advantage[:, None] * self.mask).sum() / self.mask.sum()
        adding = self.watch(logp) if watched else Spent()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if not watched:
            return adding
        begin = Spent.now()
        self.capture.drain()
        draining = Spent.now().since(begin)
        return Spent(adding.wall + draining.wall, adding.add, draining.add)

    def watch(self, logp: Tensor) -> Spent:
        """Hand the tensors over; returns the time it took."""
        begin = Spent.now()
        self.capture.add(
            RoleBatch.from_padded(
                VOTING,
                role=self.role,
                mask=self.mask,
                slot=self.role,
                advantage=self.advantage,
                reward=self.advantage,
                logp=logp,
                old_logp=self.old,
                rollout_logp=self.old,
                entropy=self.entropy,
                temperature=0.7,
                clip=(0.2, 0.28),
            )
        )
        return Spent.now().since(begin)


def timed(run: Callable[[bool], Spent], watched: bool) -> tuple[float, Spent]:
    begin = time.perf_counter()
    inside = run(watched)
    return time.perf_counter() - begin, inside


def compare(size: Size) -> dict[str, object]:
    step = Step(size, TokenCapture(VOTING))
    for watched in (True, False):
        step.run(watched)
    plain: list[float] = []
    watching: list[float] = []
    inside: list[Spent] = []
    for number in range(size.repeats):
        # The order alternates, so that neither side always runs on warmer caches.
        for watched in (True, False) if number % 2 else (False, True):
            seconds, own = timed(step.run, watched)
            (watching if watched else plain).append(seconds)
            if watched:
                inside.append(own)
    walls = [ratio.wall for ratio in inside]
    medians = [1e3 * statistics.median(series) for series in (plain, watching, walls)]
    return {
        **asdict(size),
        "plain_ms": medians[0],
        "watched_ms": medians[1],
        "ratio": medians[1] / medians[0],
        "inside_ms": medians[2],
        "inside_share": medians[2] / medians[0],
        "add_cpu_ms": 1e3 * statistics.median(ratio.add for ratio in inside),
        "drain_cpu_ms": 1e3 * statistics.median(ratio.drain for ratio in inside),
        "spread_plain_ms": 1e3 * (max(plain) - min(plain)),
    }


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="run only the size whose name starts with this")
    parser.add_argument("--threads", type=int, default=1)
    wanted = parser.parse_args(arguments)
    torch.set_num_threads(wanted.threads)
    results = []
    for size in SIZES:
        if wanted.only and not size.name.startswith(wanted.only):
            continue
        row = compare(size)
        results.append(row)
        print(
            f"{size.name}: {row['plain_ms']:.1f} ms plain, {row['watched_ms']:.1f} ms watched, "
            f"x{row['ratio']:.4f}; in the capture {row['inside_ms']:.2f} ms "
            f"= {100 * float(str(row['inside_share'])):.2f} % of a step; processor time of add "
            f"{row['add_cpu_ms']:.2f} ms, of drain {row['drain_cpu_ms']:.2f} ms"
        )
    machine = {"python": platform.python_version(), "torch": torch.__version__}
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(
        json.dumps({**machine, "threads": wanted.threads, "results": results}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
