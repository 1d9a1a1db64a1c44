"""How fast the reference trainer is: against TRL, and isolated against shared policies.

``python -m benchmarks.trainer_speed [--steps 18]`` trains the tiny preset's model on one thread.
First with one generator per episode, against TRL's GRPOTrainer, which plays no workflows by itself:
8 problems x 8 rollouts, LoRA, one update of 64 rows per iteration, the same prompts, rewards,
length limit and settings on both sides, gradient checkpointing off. The two take turns, iteration
by iteration in one process, so that a busy machine slows down both. Then voting with one adapter
per role and with a shared one, again in turns, at a learning rate at which both stay the base
model: they draw the same number of tokens then. CPU time is what is compared; the machine may be
shared. Generation and training are also reported by themselves; what is neither is grading,
advantages, and here the adapter check and the re-scoring. Results go to ``benchmarks/out/``.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from transformers import TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer

from reference_trainer.config import Config, load
from reference_trainer.pretrain import load_base, pretrained
from reference_trainer.setup import Setup, prepare
from reference_trainer.trainer import _iterate

OUT = Path(__file__).parent / "out" / "trainer_speed.json"
SKIPPED = 2
"""Iterations at the start that are not counted: first calls allocate."""


@dataclass
class Series:
    """CPU seconds, also of two parts, wall seconds and output tokens per iteration."""

    cpu: list[float] = field(default_factory=list)
    generation: list[float] = field(default_factory=list)
    training: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def summary(self) -> dict[str, float]:
        """Medians."""
        pace = [n / s for n, s in zip(self.tokens, self.cpu, strict=True)]
        return {
            "cpu_s_per_step": statistics.median(self.cpu[SKIPPED:]),
            "generation_cpu_s": statistics.median(self.generation[SKIPPED:]),
            "training_cpu_s": statistics.median(self.training[SKIPPED:]),
            "wall_s_per_step": statistics.median(self.wall[SKIPPED:]),
            "tokens_per_step": statistics.median(self.tokens[SKIPPED:]),
            "tokens_per_cpu_s": statistics.median(pace[SKIPPED:]),
        }


class Clock:
    """CPU and wall time since it was started."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin now."""
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def stop(self, series: Series, tokens: float) -> None:
        """Add what has passed to ``series``."""
        series.cpu.append(time.process_time() - self._cpu)
        series.wall.append(time.perf_counter() - self._wall)
        series.tokens.append(round(tokens))


def ours(setup: Setup, step: int, series: Series) -> None:
    """One iteration of this trainer, with its adapter check and its re-scoring."""
    clock = Clock()
    report, _ = _iterate(setup, step, None)
    tokens = sum(
        float(role["tokens"] or 0) * float(role["spans"] or 0) for role in report.roles.values()
    )
    clock.stop(series, tokens)
    series.generation.append(report.seconds["generation"])
    series.training.append(report.seconds["training"])


def timed(call: Callable[..., Any], into: list[float]) -> Callable[..., Any]:
    """``call``, which also adds its CPU seconds to the last number of ``into``."""

    def timing(*args: Any, **kwargs: Any) -> Any:
        start = time.process_time()
        try:
            return call(*args, **kwargs)
        finally:
            into[-1] += time.process_time() - start

    return timing


class InTurns(TrainerCallback):
    """Times every step of TRL and lets the other trainer have its turn after it."""

    def __init__(self, setup: Setup, ours: Series, theirs: Series) -> None:
        self.setup, self.ours, self.theirs = setup, ours, theirs
        self.clock = Clock()
        self.tokens = 0

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """TRL's first turn."""
        self.begin()

    def begin(self) -> None:
        """Begin TRL's next turn."""
        self.theirs.generation.append(0.0)
        self.theirs.training.append(0.0)
        self.clock.start()

    def on_step_end(self, _args: Any, state: Any, *_: Any, **__: Any) -> None:
        """End TRL's turn and take ours."""
        self.clock.stop(self.theirs, self.tokens)
        self.tokens = 0
        ours(self.setup, int(state.global_step), self.ours)
        self.begin()


def against_trl(config: Config, *, steps: int, cache: Path) -> dict[str, dict[str, float]]:
    """Both trainers in turns on the single-agent workflow."""
    config = replace(config, workflow="single", train=replace(config.train, steps=steps))
    setup = prepare(config, cache=cache)
    ours, theirs = Series(), Series()
    turns = InTurns(setup, ours, theirs)
    scene, rollout = setup.stage.scene, config.rollout
    problems = [scene.task.problem("train", i) for i in range(steps * rollout.problems)]
    rows = [
        {"prompt": scene.prompts.fill("generator", question=value.question), "number": i}
        for i, value in enumerate(problems)
    ]

    def reward(completions: list[str], completion_ids: Any, number: list[int], **_: Any) -> Any:
        turns.tokens += sum(len(ids) for ids in completion_ids)
        pairs = zip(number, completions, strict=True)
        return [float(scene.task.grade(problems[i], text).correct) for i, text in pairs]

    folder = pretrained(config.pretrain, config.task, prompts=config.prompts, cache=cache)
    base, tokenizer = load_base(folder)
    with tempfile.TemporaryDirectory() as scratch:
        trainer: Any = GRPOTrainer(
            model=base,
            reward_funcs=reward,
            args=trl_settings(config, steps=steps, folder=scratch),
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=config.lora.rank,
                lora_alpha=config.lora.alpha,
                target_modules="all-linear",
                task_type="CAUSAL_LM",
            ),
            callbacks=[turns],
        )
        trainer._generate = timed(trainer._generate, theirs.generation)
        trainer.compute_loss = timed(trainer.compute_loss, theirs.training)
        trainer.accelerator.backward = timed(trainer.accelerator.backward, theirs.training)
        trainer.create_optimizer()
        trainer.optimizer.step = timed(trainer.optimizer.step, theirs.training)
        trainer.train()
    return {"reference_trainer": ours.summary(), "trl": theirs.summary()}


def trl_settings(config: Config, *, steps: int, folder: str) -> GRPOConfig:
    """The same run in TRL's words."""
    train, rollout = config.train, config.rollout
    return GRPOConfig(
        output_dir=folder,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=rollout.problems * rollout.copies,
        num_generations=rollout.copies,
        max_completion_length=rollout.max_new_tokens,
        temperature=rollout.temperature,
        max_steps=steps,
        learning_rate=train.adam.lr,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=train.adam.warmup_steps,
        weight_decay=train.adam.weight_decay,
        max_grad_norm=train.adam.max_grad_norm,
        beta=0.0,
        loss_type="grpo",
        epsilon=train.clip.low,
        epsilon_high=train.clip.high,
        delta=train.clip.dual,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def isolated_against_shared(
    config: Config, *, steps: int, cache: Path
) -> dict[str, dict[str, float]]:
    """Voting with an adapter per role and with one for both roles, in turns."""
    adam = replace(config.train.adam, lr=1e-7)
    config = replace(config, workflow="voting", train=replace(config.train, steps=steps, adam=adam))
    setups = {
        routing: prepare(replace(config, routing=routing), cache=cache)
        for routing in ("isolated", "shared")
    }
    series = {routing: Series() for routing in setups}
    for step in range(1, steps + 1):
        for routing, setup in setups.items():
            ours(setup, step, series[routing])
    return {routing: series.summary() for routing, series in series.items()}


def main(arguments: Sequence[str] = ()) -> None:
    """Run both comparisons and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=18)
    parser.add_argument("--cache", type=Path, default=Path("runs/.cache"))
    options = parser.parse_args(list(arguments))
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = load("voting-ip-healthy", {"validation": {"every": 0}})
    trl = against_trl(config, steps=options.steps, cache=options.cache)
    routing = isolated_against_shared(config, steps=options.steps, cache=options.cache)
    faster = trl["reference_trainer"]["tokens_per_cpu_s"] / trl["trl"]["tokens_per_cpu_s"]
    slower = routing["isolated"]["cpu_s_per_step"] / routing["shared"]["cpu_s_per_step"]
    for name, value in (trl | routing).items():
        print(
            f"{name:18s} {value['cpu_s_per_step']:.3f} CPU s per step (generation "
            f"{value['generation_cpu_s']:.3f}, training {value['training_cpu_s']:.3f}), "
            f"{value['wall_s_per_step']:.3f} s wall, {value['tokens_per_step']:.0f} tokens, "
            f"{value['tokens_per_cpu_s']:.0f} per CPU s"
        )
    print(f"tokens per CPU second: x{faster:.2f} of TRL; isolated over shared: x{slower:.3f}")
    OUT.parent.mkdir(exist_ok=True)
    result = {
        "machine": platform.processor() or platform.machine(),
        "torch": torch.__version__,
        "steps": options.steps,
        "against_trl": trl,
        "routing": routing,
        "times_trl": faster,
        "isolated_over_shared": slower,
    }
    OUT.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
