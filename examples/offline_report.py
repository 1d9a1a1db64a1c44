"""A report of a run that is over: what the paper's code (arXiv 2605.24202) left on the disk.

With a run of your own it is two commands, and nothing has to be installed beside roledrift:

    roledrift import <trajectory_output_dir>/<experiment>/<dataset> --out runs/imported
    roledrift report runs/imported

Without one, this script writes a small dump in the same layout first, in which the answers of the
aggregator grow, and then runs the two commands on it.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any


def trajectory(name: str, text: str, *, reward: float) -> dict[str, Any]:
    output = {
        "text": text,
        "content": text,
        "reasoning": "",
        "prompt_length": 12,
        "completion_length": len(text.split()),
        "finish_reason": "stop",
    }
    chat = [{"role": "user", "content": f"task of {name}"}, {"role": "assistant", "content": text}]
    step = {"chat_completions": chat, "action": text, "model_output": output, "reward": reward}
    return {"uid": "0", "name": name, "task": None, "steps": [step], "reward": reward, "info": {}}


def episode(number: int, step: int, draw: random.Random) -> dict[str, Any]:
    """Three generators answer a sum, the aggregator picks one of them, at ever greater length."""
    a, b = draw.randrange(10, 99), draw.randrange(10, 99)
    answers = [a + b if draw.random() < 0.7 else a + b + 1 for _ in range(3)]
    pick = draw.randrange(3)
    correct = answers[pick] == a + b
    texts = [
        f"{a} and {b} make " + "well " * draw.randrange(6) + f"\\boxed{{{s}}}" for s in answers
    ]
    musing = "let me think again " * (2 + draw.randrange(2) + max(0, step - 12))
    trajectories = [
        # As there, everyone is rewarded with the outcome; who was right is graded again.
        trajectory(f"generator{i}", text, reward=float(correct))
        for i, text in enumerate(texts)
    ]
    trajectories.append(
        # Solutions are numbered from 1.
        trajectory("aggregator", f"{musing}\\boxed{{{pick + 1}}}", reward=float(correct))
    )
    return {
        "id": f"eval_{number}",
        "task": {"question": f"What is {a} + {b}?", "final_answer": str(a + b)},
        "termination_reason": None,
        "is_correct": correct,
        "trajectories": trajectories,
        "metrics": {},
        "info": {},
    }


def write_dump(root: Path, steps: int) -> Path:
    """The folder of the data set, with one folder per evaluation in it."""
    dataset = root / "voting-qwen3_1.7b-multi_lora-math" / "dapo_math"
    draw = random.Random(0)
    for step in range(steps):
        folder = dataset / f"step_{step * 10}"
        folder.mkdir(parents=True)
        for number in range(24):
            body = json.dumps(episode(number, step, draw), indent=2)
            (folder / f"eval_{number}.json").write_text(body)
    return dataset


def main() -> int:
    """Returns the exit code of the first command that fails, else 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/offline"))
    parser.add_argument("--dump", type=Path, help="a dump of your own; without it one is written")
    parser.add_argument("--steps", type=int, default=24)
    asked = parser.parse_args()
    dump = asked.dump or write_dump(asked.out / "dump", asked.steps)
    for words in (
        ["import", str(dump), "--out", str(asked.out / "run")],
        ["report", str(asked.out / "run"), "--out", str(asked.out / "report")],
    ):
        print("$ roledrift", *words, flush=True)
        code = subprocess.call([sys.executable, "-m", "roledrift", *words])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
