"""Seconds of processor time to check a single-policy log of 5,000 steps; target: 1.

The log is a made-up ``trainer_state.json`` with the keys of TRL. With ``--against CHECKOUT`` the
code of another checkout checks the same log in turns with this one.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.checkouts import compare

STEPS = 5000
ROUNDS = 3
TARGET_S = 1.0


def rows(steps: int, seed: int = 0) -> list[dict[str, float]]:
    """A run that learns, is truncated for a while, and whose entropy collapses in the end."""
    rng = random.Random(seed)
    made = []
    for step in range(1, steps + 1):
        done = step / steps
        late = done > 0.7
        accuracy = 0.45 if late else 0.3 + 0.4 * done
        entropy = 0.5 * 0.1 ** ((done - 0.7) * 20) + 0.01 if late else 0.6 - 0.15 * done
        truncated = 0.6 if 0.4 < done < 0.42 else 0.02
        reward = accuracy + rng.gauss(0, 0.04)
        made.append(
            {
                "loss": rng.gauss(0, 0.01),
                "grad_norm": 0.3 * rng.lognormvariate(0, 0.2),
                "learning_rate": 1e-6,
                "num_tokens": 1000.0 * step,
                "completions/mean_length": 300 * rng.lognormvariate(0, 0.05),
                "completions/clipped_ratio": truncated + abs(rng.gauss(0, 0.01)),
                "rewards/accuracy_reward/mean": reward,
                "rewards/accuracy_reward/std": 0.4,
                "reward": reward,
                "reward_std": 0.3,
                "frac_reward_zero_std": 0.3 + abs(rng.gauss(0, 0.03)),
                "entropy": entropy * rng.lognormvariate(0, 0.05),
                "kl": 0.001 * step,
                "clip_ratio/region_mean": 0.01,
                "step_time": 12.0,
                "step": step,
                "epoch": done,
            }
        )
    return made


def check(log: Path, checkout: Path) -> float:
    """Processor seconds of ``roledrift check``, with the start of Python."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "roledrift", "check", str(log)]
    environment = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"check failed: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "trainer_state.json"
        log.write_text(json.dumps({"global_step": STEPS, "log_history": rows(STEPS)}))
        compare(
            "check_5000_steps_s",
            lambda checkout: check(log, checkout),
            target=TARGET_S,
            rounds=ROUNDS,
            about=__doc__ or "",
        )


if __name__ == "__main__":
    main()
