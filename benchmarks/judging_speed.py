"""Milliseconds to judge a step of 8 roles with everything recorded; target: 5.

With ``--against CHECKOUT`` the detectors of another checkout judge the same records in turns with
these, each round in a process of its own, and the ratio of the medians is told.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.checkouts import HERE, compare

STEPS = 100
ROUNDS = 5
TARGET_MS = 5.0
_ROUND = (
    "import sys; sys.path[:0] = [{theirs!r}]; import roledrift; sys.path[:1] = [{ours!r}]; "
    "from benchmarks.judging_speed import one_round; print(one_round())"
)


def one_round(steps: int = STEPS) -> float:
    """Milliseconds of processor time per step, of one replay of a simulated healthy run."""
    from benchmarks.detection.simulations.healthy import Condition, healthy_plan
    from benchmarks.detection.simulations.synthesis import simulate
    from roledrift import replay

    plan = healthy_plan(Condition("", steps=steps, workflow="8 roles"))
    records = simulate(plan, 0)
    replay(records[:20], plan.workflow)  # imports and caches are not what is timed
    begin = time.process_time()
    replay(records, plan.workflow)
    return (time.process_time() - begin) * 1e3 / steps


def in_process(checkout: Path) -> float:
    """The same in a new process, with the detectors of ``checkout`` and the records of this one."""
    code = _ROUND.format(theirs=str(checkout), ours=str(HERE))
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    compare("judge_8_roles_ms", in_process, target=TARGET_MS, rounds=ROUNDS, about=__doc__ or "")


if __name__ == "__main__":
    main()
