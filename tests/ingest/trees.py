"""A tree of the paper's experiments in its own format, small enough to be counted by hand.

Every problem's answer is 5. A solved episode says 5, another one 6.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.ingest.logs import episode, trajectory, write_lines

DUMPS = "evaluation_trajectories"
IP = "voting-qwen3_1.7b-multi_lora-math"
SP = "voting-qwen3_1.7b-share_policy-math"
BASE = "voting-qwen3_1.7b-base_model-math"
TRANSFER = "voting-qwen3_1.7b-single_agent_generator_transfer-math"
SINGLE = "single_agent-qwen3_1.7b-share_policy-math"
ORCH = "orchestrator_workers_propose-qwen3_1.7b_s430-multi_lora-math"
JUDGED = "evaluator_optimizer-qwen3_0.6b-share_policy-math"
JUDGED_BASE = "evaluator_optimizer-qwen3_0.6b-base_model-math"

Make = Callable[[int, bool], dict[str, Any]]


def _said(right: bool) -> str:
    return f"so \\boxed{{{5 if right else 6}}}"


def voting(number: int, right: bool) -> dict[str, Any]:
    """Generators of 10, 11 and 12 tokens; the aggregator of the first problem writes 100."""
    solvers = [trajectory(f"generator{i}", _said(right), tokens=10 + i) for i in range(3)]
    long = number == 0
    choice = trajectory(
        "aggregator", "wait, it is \\boxed{1}" if long else "\\boxed{1}", tokens=100 if long else 4
    )
    return episode(number, *solvers, choice, correct=right)


def judged(number: int, right: bool) -> dict[str, Any]:
    """The evaluator calls every answer correct; every second time around a program."""
    program = "```python\na\nb\nc\n```\n" if number % 2 else ""
    return episode(
        number,
        trajectory("generator", _said(right), tokens=20, cut=number < 3),
        trajectory("evaluator", program + "\\boxed{Correct}", tokens=30 if number % 2 else 5),
        correct=right,
    )


def orchestrated(number: int, right: bool) -> dict[str, Any]:
    workers = [trajectory("worker", _said(right), tokens=30, cut=number < 6)] * 2
    return episode(
        number,
        trajectory("orchestrator", f"STRATEGY 1: way {number % 4}", tokens=8),
        *workers,
        trajectory("synthesizer", _said(right), tokens=6 + number),
        correct=right,
    )


def single(number: int, right: bool) -> dict[str, Any]:
    return episode(number, trajectory("generator", _said(right), tokens=9), correct=right)


def dump(
    root: Path, name: str, solved: Mapping[int, int], make: Make, *, n: int = 12,
    dataset: str = "dapo_math",
) -> Path:  # fmt: skip
    """``n`` episodes per checkpoint, of which the first ``solved[step]`` are right."""
    folder = root / DUMPS / name / dataset
    for step, right in solved.items():
        (folder / f"step_{step}").mkdir(parents=True)
        for number in range(n):
            body = json.dumps(make(number, number < right), indent=2)
            (folder / f"step_{step}" / f"eval_{number}.json").write_text(body)
    return folder


def paper_tree(root: Path) -> Path:
    """Two voting trainings with their base, a transfer, a control, and two other workflows."""
    dump(root, IP, {10: 4, 20: 9, 30: 6}, voting)
    dump(root, IP, {10: 1, 20: 1, 30: 2}, voting, n=3, dataset="aime2025")
    dump(root, SP, {10: 5, 20: 6, 30: 2}, voting)
    dump(root, BASE, {0: 3}, voting)
    dump(root, TRANSFER, {0: 7}, voting)
    dump(root, SINGLE, {10: 5, 20: 8}, single)
    dump(root, ORCH, {10: 4, 20: 8}, orchestrated)
    dump(root, JUDGED, {10: 3, 20: 6}, judged)
    dump(root, JUDGED_BASE, {0: 8}, judged)
    return root


def result(name: str, step: int, accuracy: float, **more: Any) -> dict[str, Any]:
    """A row of ``eval_results.jsonl``."""
    kinds = ("base_model", "single_agent_generator_transfer")
    mode = next((one for one in kinds if one in name), "trained_checkpoint")
    return {
        "dataset": "dapo_math",
        "experiment_name": name,
        "checkpoint_step": step,
        "accuracy": accuracy,
        "eval_mode": mode,
        "length_mode": "training",
        "n_rollouts": 1,
        "share_policy": "multi_lora" not in name,
    } | more


def results(root: Path, *rows: dict[str, Any]) -> Path:
    """The file of results, where the evaluator writes it: where it is started."""
    return write_lines(root / "eval_results.jsonl", rows)


def console(folder: Path, lines: Mapping[int, Mapping[str, float]], *, name: str = "") -> Path:
    """A wandb folder with the console's lines and, as wandb writes it, the configuration."""
    files = folder / "files"
    files.mkdir(parents=True)
    text = "".join(
        f"step:{step} - " + " - ".join(f"{key}:{value}" for key, value in row.items()) + "\n"
        for step, row in lines.items()
    )
    (files / "output.log").write_text(text)
    if name:
        config = f"trainer:\n  value:\n    experiment_name: {name}\n    project_name: p\n"
        (files / "config.yaml").write_text(config)
    return folder
