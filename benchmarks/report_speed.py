"""Time and memory of a report on a folder of runs.

The folder: 42 runs (three workflows, shared and isolated policies, seven seeds), 500 steps each,
and three checkpoints with the texts of 100 episodes. Target on two cores: 10 seconds, 1 GB in all.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from roledrift import EVAL_OPT, ORCH_WORKERS, VOTING, Sample, StepRecord, Workflow
from roledrift.records import GramRecord, RunHeader, Stat
from roledrift.store.writer import RunWriter

TEXT = """we add both sides and then subtract the smaller number to get what is left over
wait actually let us check that again because the sum of the first ten terms is not even"""
WORDS = TEXT.split()
POOLED = (
    "entropy", "clip_fraction", "rollout.chi2", "rollout.k1", "rollout.k3", "old.chi2", "old.k3",
    "update.chi2", "update.k3", "boxed", "bare_stamp", "code_fence", "verdict_tag", "hedging",
    "terse", "zero_variance",
)  # fmt: skip
ROWS = ("reward", "advantage", "ppl", "rollout.training_ppl", "rollout.ppl_ratio", "truncated")


def record(workflow: Workflow, step: int, draw: random.Random) -> StepRecord:
    groups = {}
    for role in workflow.roles:
        names = [role.name]
        names += [f"{role.name}/{slot}" for slot in range(role.slots) if role.slots > 1]
        for name in names:
            stats = {name: Stat(4096, draw.random()) for name in POOLED}
            stats |= {name: Stat(64, draw.random(), 0.2, 0.0, 1.0) for name in ROWS}
            length = (12 if role.terse else 700) * (1 + 0.1 * draw.random())
            stats["length"] = Stat(64, length, 90.0, 1, 4096, length / 3, length, length * 2)
            groups[name] = stats
    totals = {"reward": 0.4 + 0.2 * draw.random()}
    if step % 10 == 0:
        totals["val_accuracy"] = 0.3 + 0.1 * draw.random() + step / 3000
    size = len(workflow.roles)
    products = tuple(
        tuple(4.0 if i == j else draw.random() for j in range(size)) for i in range(size)
    )
    gram = GramRecord("shared", workflow.role_names, products, "folded", 0.01)
    return StepRecord(
        step,
        time=f"2026-01-01T{step // 60:02d}:{step % 60:02d}:00Z",
        groups=groups,
        totals=totals,
        gradients=(gram,) if step % 5 == 0 else (),
        cost_ms={"capture": 10.0, "measure": 2.0, "write": 0.5},
    )


def samples(workflow: Workflow, step: int, episodes: int, draw: random.Random) -> list[Sample]:
    samples = []
    for episode in range(episodes):
        for role in workflow.roles:
            for slot in range(role.slots):
                text = " ".join(draw.choice(WORDS) for _ in range(4 if role.terse else 110))
                samples.append(
                    Sample(
                        *(step, role.name, text + " \\boxed{2}", slot),
                        prompt=f"p{episode}", episode=f"e{episode}",
                        prompt_text=f"Problem {episode}",
                        tokens=len(text) // 4, finish="stop", reward=float(draw.random() < 0.5),
                    )
                )  # fmt: skip
    return samples


def write_folder(folder: Path, *, runs: int, steps: int, episodes: int) -> None:
    """A folder of runs: 7 templates are simulated and copied, for writing is not what is timed."""
    flows = (VOTING, EVAL_OPT, ORCH_WORKERS)
    templates = [flow.routed(how) for flow in flows for how in ("shared", "isolated")]
    for index in range(runs):
        workflow = templates[index % len(templates)]
        path = folder / f"run-{index:04d}"
        header = RunHeader(
            f"{workflow.name}-{workflow.routing}-{index}", workflow, task="math", scale="1.7B",
            seed=index // len(templates),
        )  # fmt: skip
        source = folder / f"run-{index % len(templates):04d}"
        if source != path:
            shutil.copytree(source, path)
            (path / "run.json").unlink()
            for file in path.glob("steps.*"):
                file.rename(folder / "steps.saved")
            RunWriter(path, header, writer="w").close()
            (folder / "steps.saved").replace(path / "steps.w.jsonl")
            continue
        draw = random.Random(index)
        with_texts = {0, steps // 2, steps - 1}
        writer = RunWriter(path, replace(header), writer="w")
        for step in range(steps):
            writer.write_step(record(workflow, step, draw))
            if step in with_texts:
                writer.write_samples(step, samples(workflow, step, episodes, draw))
        writer.close()


def watched(arguments: list[str], *, memory: bool) -> tuple[float, float, float]:
    """Run a verb: seconds, seconds of processor time, largest MB of all its processes together.

    The workers are no children of the command, so all processes of its session are looked at.
    Adding up their memory (shared pages count once) costs the kernel a walk through all of it,
    twenty times a second: what is timed runs without.
    """
    began = time.perf_counter()
    command = [sys.executable, "-m", "roledrift", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    worked: dict[int, float] = {}
    peak, pause = 0.0, 0.05 if memory else 0.2
    while running.poll() is None:
        now = 0.0
        for process in _session(running.pid):
            with suppress(OSError, IndexError):
                fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
                ticks = int(fields[11]) + int(fields[12])
                worked[int(process.name)] = ticks / os.sysconf("SC_CLK_TCK")
                if memory:
                    shares = (process / "smaps_rollup").read_text()
                    now += int(re.findall(r"^Pss: +(\d+)", shares, re.M)[0]) / 1024
        peak = max(peak, now)
        time.sleep(pause)
    spent = time.perf_counter() - began
    if running.returncode:
        raise SystemExit(f"roledrift {arguments[0]} left with {running.returncode}")
    return spent, sum(worked.values()), peak


def _session(leader: int) -> list[Path]:
    processes = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                if os.getsid(int(process.name)) == leader:
                    processes.append(process)
    return processes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=42)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch) / "runs"
        if not folder.exists():
            folder.mkdir(parents=True)
            write_folder(folder, runs=args.runs, steps=args.steps, episodes=args.episodes)
        out = Path(scratch) / "report"
        command = ["report", str(folder), "-o", str(out)]
        spent, worked, _ = watched(command, memory=False)
        load = os.getloadavg()[0]
        _, _, peak = watched(command, memory=True)
        size = sum(file.stat().st_size for file in out.rglob("*.html")) / 1e6
        print(f"{args.runs} runs x {args.steps} steps: {spent:.1f} s ({worked:.1f} s of processor "
              f"time), {peak:.0f} MB at most in all processes together, {size:.1f} MB of pages; "
              f"{load:.1f} processes wanted to run")  # fmt: skip


if __name__ == "__main__":
    main()
