"""How fast foreign logs are imported, and in how much memory.

Made-up logs of several formats are written to a temporary folder and imported, each in a process of
its own. Target: at least 20 MB/s, and at most 500 MB for a gigabyte (`--megabytes 1000`).
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

STEPS = 40
WORDS = (
    "the of sum we let then solve equation \\frac{1}{2} x=3 therefore answer is number (a+b)^{2} ",
    "and so on value we have that is given by f(x) over all n in {1,2,3} with remainder mod p",
)

MAPPING = (
    '[columns]\nstep = "step"\ntext = "output"\nreward = "score"\ngroup = "input"\n'
    '[constants]\nrole = "generator"\n'
)

CHILD = """
import resource, sys, time
from pathlib import Path
from roledrift.ingest import named, sniff
from roledrift.ingest.importing import import_run, job_for
source, out, mapping = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
job = job_for(source, mapping=Path(mapping) if mapping else None)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
begin, spent = time.perf_counter(), time.process_time()
done = import_run(named("table") if mapping else sniff(source), job, out)
seconds, spent = time.perf_counter() - begin, time.process_time() - spent
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(seconds, spent, before, peak, done.tally.spans, done.format)
"""


def texts(rng: random.Random) -> list[str]:
    """A few hundred texts of 200 to 8000 characters, as long as answers are."""
    words = "".join(WORDS).split()
    made = []
    for _ in range(300):
        n = int(min(max(rng.lognormvariate(5.2, 0.9), 30), 1600))
        made.append(" ".join(rng.choices(words, k=n)) + f" \\boxed{{{rng.randint(0, 9)}}}")
    return made


def paper(folder: Path, size: int, rng: random.Random) -> None:
    pool = texts(rng)
    per_step = size // STEPS
    for step in range(STEPS):
        where = folder / "voting-qwen3_1.7b-multi_lora-math" / "math" / f"step_{step}"
        where.mkdir(parents=True)
        written = number = 0
        while written < per_step:
            names = ("generator0", "generator1", "generator2", "aggregator")
            body = json.dumps(
                {
                    "id": f"eval_{number}",
                    "task": {"question": f"problem {number}", "final_answer": "5"},
                    "termination_reason": None,
                    "is_correct": True,
                    "trajectories": [_trajectory(name, rng.choice(pool)) for name in names],
                    "metrics": {},
                },
                indent=2,
            )
            (where / f"eval_{number}.json").write_text(body)
            written += len(body)
            number += 1


def _trajectory(name: str, text: str) -> dict[str, object]:
    # As in the real dump, the text is there four times.
    output = {
        "text": text,
        "content": text,
        "completion_length": len(text) // 4,
        "finish_reason": "stop",
    }
    chat = [{"role": "user", "content": "solve"}, {"role": "assistant", "content": text}]
    step = {"chat_completions": chat, "action": text, "model_output": output, "reward": 1.0}
    return {"uid": "u", "name": name, "steps": [step], "reward": 1.0}


def rows(
    size: int, rng: random.Random, *, steps: Iterable[int] = range(STEPS)
) -> Iterator[tuple[int, dict[str, object]]]:
    pool = texts(rng)
    for step in steps:
        written = number = 0
        while written < size // STEPS:
            text = rng.choice(pool)
            row: dict[str, object] = {
                "input": f"problem {number % 64}",
                "output": text,
                "gts": "5",
                "score": float(rng.random() < 0.5),
                "step": step,
                "uid": f"p{number % 64}_{number // 256}_{number % 4}",
            }
            written += len(text) + 120
            number += 1
            yield step, row


def verl(folder: Path, size: int, rng: random.Random) -> None:
    files = [(folder / f"{step}.jsonl").open("w") for step in range(STEPS)]
    for step, row in rows(size, rng):
        files[step].write(json.dumps(row) + "\n")
    for file in files:
        file.close()


def table(folder: Path, size: int, rng: random.Random) -> None:
    with (folder / "all.jsonl").open("w") as file:
        for _, row in rows(size, rng):
            file.write(json.dumps(row) + "\n")
    (folder / "map.toml").write_text(MAPPING)


def comma(folder: Path, size: int, rng: random.Random) -> None:
    with (folder / "all.csv").open("w", newline="") as file:
        writer: csv.DictWriter[str] | None = None
        for _, row in rows(size, rng):
            if writer is None:
                writer = csv.DictWriter(file, list(row))
                writer.writeheader()
            writer.writerow(row)
    (folder / "map.toml").write_text(MAPPING)


def parquet(folder: Path, size: int, rng: random.Random) -> None:
    """Neither packed nor with a dictionary, so that a megabyte is a megabyte of text.

    A row group is a 40th of the file; what is read at once does not depend on it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: pq.ParquetWriter | None = None
    for step in range(STEPS):
        made = [row for _, row in rows(size, rng, steps=(step,))]
        table = pa.Table.from_pylist(made)
        writer = writer or pq.ParquetWriter(
            folder / "all.parquet", table.schema, use_dictionary=False, compression="none"
        )
        writer.write_table(table)
    if writer is not None:
        writer.close()
    (folder / "map.toml").write_text(MAPPING)


def prime(folder: Path, size: int, rng: random.Random) -> None:
    """Traces and token exports: a 30th of the bytes is text, the rest are numbers per token."""
    per_step = size // STEPS
    for step in range(STEPS):
        step_folder = folder / "rollouts" / f"step_{step}" / "train" / "effective"
        exports = folder / "token_exports" / f"step_{step}"
        step_folder.mkdir(parents=True)
        exports.mkdir(parents=True)
        written = number = 0
        with (
            (step_folder / "traces.jsonl").open("w") as a,
            (exports / "rank_0.jsonl").open("w") as b,
        ):
            while written < per_step:
                n = rng.randrange(200, 2000)
                ids = [rng.randrange(150_000) for _ in range(n)]
                floats = [-rng.random() for _ in range(n)]
                node = {
                    "sampled": True, "token_ids": ids, "mask": [True] * n, "logprobs": floats,
                    "message": {"role": "assistant", "content": "word " * (n // 2)},
                }  # fmt: skip
                trace = {"agent": {"name": "solver"}, "nodes": [node], "rewards": {}, "calls": []}
                export = dict.fromkeys(("trainer_logprobs", "inference_logprobs"), floats)
                export |= {"entropy": floats, "importance_ratio": floats, "mismatch_kl": floats}
                line = json.dumps({"id": str(number), "traces": [trace]}) + "\n"
                other = json.dumps({"token_ids": ids, "loss_mask": [True] * n} | export) + "\n"
                written += a.write(line) + b.write(other)
                number += 1


def console(folder: Path, size: int, rng: random.Random) -> None:
    step = written = 0
    keys = [f"actor/{role}/{leaf}" for role in ("a", "b") for leaf in ("chi2_token", "grad_norm")]
    keys += [f"timing_s/part{n}" for n in range(80)]
    with (folder / "run.log").open("w") as file:
        while written < size:
            line = f"step:{step} - " + " - ".join(f"{key}:{rng.random()}" for key in keys)
            noise = ("(TaskRunner pid=7) INFO " + "x" * 150 + "\n") * 200
            written += file.write(line + "\n" + noise)
            step += 1


def wandb(folder: Path, size: int, rng: random.Random) -> None:
    """By the real wandb, offline: 50 MB, which is 5000 steps of 114 numbers.

    For more, the run is preempted as often as it takes: each start repeats all steps.
    """
    import wandb as real

    quiet = real.Settings(x_disable_stats=True, console="off", silent=True, mode="offline")
    run = real.init(project="p", dir=str(folder), settings=quiet)
    leaves = ("chi2_token", "training_ppl", "grad_norm", "kl", "k3_kl", "pg_clipfrac", "ppl_ratio")
    keys = [f"actor/{role}/{leaf}" for role in ("generator", "aggregator") for leaf in leaves]
    keys += [f"timing_s/part{n}" for n in range(100)]
    for step in range(min(size, 50 * 10**6) // 10_000):
        run.log({key: rng.random() for key in keys}, step=step)
    run.finish()
    (made,) = (folder / "wandb").glob("offline-run-*")
    for start in range(1, size // (50 * 10**6)):
        date, _, name = made.name.removeprefix("offline-run-").rpartition("-")
        again = made.with_name(f"offline-run-{int(date[:8]) + 10_000}_{start:06}-{name}")
        shutil.copytree(made, again)


FORMATS: dict[str, Callable[[Path, int, random.Random], None]] = {
    "paper": paper,
    "verl": verl,
    "table": table,
    "csv": comma,
    "parquet": parquet,
    "prime": prime,
    "console": console,
    "wandb": wandb,
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--format", choices=sorted(FORMATS), action="append")
    known, _ = parser.parse_known_args()
    print(
        "| format | input, MB | spans | MB/s | MB per CPU s | memory before, MB | at its peak, MB |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in known.format or FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "source"
            source.mkdir()
            FORMATS[name](source, known.megabytes * 10**6, random.Random(0))
            files = [file for file in source.rglob("*") if file.is_file() and not file.is_symlink()]
            size = sum(file.stat().st_size for file in files if "latest" not in str(file)) / 1e6
            mapping = str(source / "map.toml") if (source / "map.toml").is_file() else ""
            given = next(source.glob("all.*"), source)
            done = subprocess.run(
                [sys.executable, "-c", CHILD, str(given), str(Path(folder) / "run"), mapping],
                capture_output=True,
                text=True,
                check=True,
            )
            seconds, spent, before, peak, spans, form = done.stdout.split()
            speed = size / float(seconds)
            print(
                f"| {name} ({form}) | {size:.0f} | {spans} | {speed:.1f} "
                f"| {size / float(spent):.1f} | {float(before):.0f} | {float(peak):.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
