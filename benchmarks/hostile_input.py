"""Damaged and hostile input for every verb that reads: nothing crashes, hangs or fills memory.

Each case takes a log of another framework or a run directory, damages one file of it (bytes
changed or cut off, odd JSON values, deep nesting, other encodings, broken compression, a pipe or a
device in its place), and calls a verb. Allowed is an exit code from 0 to 3 within 20 seconds,
without a traceback, an internal error or an escape sequence in the output; the memory of all cases
is told. `python -m benchmarks.hostile_input --cases 2000`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from roledrift import VOTING, Sample
from roledrift.records import RunHeader, Stat, StepRecord
from roledrift.store.writer import RunWriter

SECONDS = 20
BYTES = 3 * 2**30
FIXTURES = Path(__file__).parents[1] / "tests" / "ingest" / "fixtures"
LOGS = (
    "paper/voting-qwen3_1.7b-multi_lora-math", "paper", "paper-training", "paper-wandb",
    "paper-wandb/shared", "verl", "verl-legacy", "tinker", "rllm", "prime-rl", "pettingllms", "trl",
)  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, -1, 2**70, 10**400, 1e308, float("nan"), float("inf"), "", "x" * 5000, "\x1b[31m",
    "\ud800", [], {}, [[]], {"a": {}}, "NaN", 1e9, [0] * 1000,
)  # fmt: skip


def run_directory(place: Path) -> Path:
    """A small run with texts and alerts of its own."""
    writer = RunWriter(place, RunHeader("r", VOTING, notes={"a": "b"}), writer="w", judged=True)
    for step in range(12):
        groups = {
            role: {"length": Stat(8, 40 + 9.0 * (step > 8)), "reward": Stat(8, 0.5)}
            for role in VOTING.role_names
        }
        writer.write_step(StepRecord(step, groups=groups, totals={"val_accuracy": 0.5}))
        writer.write_samples(step, [Sample(step, "generator", "so \\boxed{5}", prompt="p")])
    writer.close()
    return place


def odder(body: Any, draw: random.Random) -> Any:
    """A JSON document with one of its values replaced, however deep it lies."""
    keys: list[Any] = []
    if isinstance(body, dict):
        keys = list(body)
    elif isinstance(body, list):
        keys = list(range(len(body)))
    if not keys or draw.random() < 0.15:
        return draw.choice(ODD)
    key = draw.choice(keys)
    body[key] = odder(body[key], draw)
    return body


def values(file: Path, raw: bytes, draw: random.Random) -> None:
    if file.suffix not in (".json", ".jsonl"):
        return flipped(file, raw, draw)
    lines = [raw] if file.suffix == ".json" else raw.splitlines()
    at = draw.randrange(len(lines))
    try:
        lines[at] = json.dumps(odder(json.loads(lines[at]), draw)).encode()
    except ValueError:
        lines[at] = b"{"
    file.write_bytes(b"\n".join(lines))
    return None


def flipped(file: Path, raw: bytes, draw: random.Random) -> None:
    changed = bytearray(raw)
    for _ in range(draw.randint(1, 8)):
        changed[draw.randrange(len(raw))] = draw.randrange(256)
    file.write_bytes(changed)


def cut(file: Path, raw: bytes, draw: random.Random) -> None:
    file.write_bytes(raw[: draw.randrange(len(raw))])


def packed(file: Path, raw: bytes, draw: random.Random) -> None:
    body = gzip.compress(raw)
    file.write_bytes(body[: draw.randint(3, len(body))])


def recoded(file: Path, raw: bytes, draw: random.Random) -> None:
    file.write_bytes(raw.decode("latin-1").encode(draw.choice(("utf-16", "utf-32", "utf-7"))))


def deep(file: Path, raw: bytes, draw: random.Random) -> None:
    depth = draw.choice((1_000, 200_000))
    file.write_bytes(raw[: raw.find(b"\n") + 1] + b'{"a":' * depth + b"1" + b"}" * depth)


def long(file: Path, raw: bytes, draw: random.Random) -> None:
    file.write_bytes(raw + draw.choice((b"\x00", b"[", b"9", b'"')) * 1_000_000 + b"\n" + raw)


def pipe(file: Path, raw: bytes, draw: random.Random) -> None:
    del raw, draw
    file.unlink()
    os.mkfifo(file)


def device(file: Path, raw: bytes, draw: random.Random) -> None:
    del raw
    file.unlink()
    file.symlink_to(draw.choice(("/dev/zero", "/dev/null", "/dev/tty", "/nowhere")))


def folder(file: Path, raw: bytes, draw: random.Random) -> None:
    del raw, draw
    file.unlink()
    file.mkdir()


DAMAGE: Sequence[Callable[[Path, bytes, random.Random], None]] = (
    values, values, values, flipped, flipped, cut, packed, recoded, deep, long, pipe, device,
    folder,
)  # fmt: skip


def arguments(run: bool, place: Path, scratch: Path, draw: random.Random) -> list[str]:
    out = str(scratch / "out")
    verbs = [["check", str(place)], ["doctor", str(place)], ["report", str(place), "-o", out]]
    if run:
        both = ["compare", str(place), str(place)]
        verbs += [["ls", str(place.parent)], ["watch", "--once", str(place)], both]
    else:
        verbs += [["import", str(place), "-o", out]] * 3
    return draw.choice(verbs)


def case(number: int, seed: int, scratch: Path) -> tuple[str, str]:
    """What one case did, and what is wrong with that; the latter empty if nothing."""
    from roledrift.cli.main import main

    draw = random.Random(f"{seed}:{number}")
    run = bool(number % 2)
    name = "run directory" if run else draw.choice(LOGS)
    place = scratch / "runs" / "a"
    source = scratch.parent / "template" if run else FIXTURES / name
    shutil.copytree(source, place)
    files = sorted(file for file in place.rglob("*") if file.is_file() and file.stat().st_size)
    file, damage = draw.choice(files), draw.choice(DAMAGE)
    damage(file, file.read_bytes(), draw)
    verb = arguments(run, place, scratch, draw)
    title = f"case {number}: {verb[0]} of {name}, {file.relative_to(place)} {damage.__name__}"
    output, late = io.StringIO(), []

    def stop(*_: object) -> None:
        late.append(number)
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        with redirect_stdout(output), redirect_stderr(output):
            code = main(verb)
    except Exception as error:
        return title, f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    if late:
        return title, "hangs"
    if code not in (0, 1, 2, 3):
        return title, f"exit code {code}"
    if "\x1b" in output.getvalue():
        return title, "an escape sequence in the output"
    return title, "an internal error" if "please report it" in output.getvalue() else ""


def cases(count: int, seed: int) -> tuple[int, list[str]]:
    """How many cases ran, and those that went wrong."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as home:
        run_directory(Path(home) / "template")
        for number in range(count):
            scratch = Path(home) / str(number)
            scratch.mkdir()
            title, why = case(number, seed, scratch)
            if why:
                wrong.append(f"{title}: {why}")
            shutil.rmtree(scratch)
    return count, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(sys.argv[1:] if __name__ == "__main__" else [])
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    ran, wrong = cases(args.cases, args.seed)
    for failure in wrong:
        print(failure)
    kinds = Counter(failure.rpartition(": ")[2] for failure in wrong)
    listed = ", ".join(f"{kind} {times}" for kind, times in kinds.items()) or "nothing went wrong"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{ran} damaged inputs: {listed}; {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
