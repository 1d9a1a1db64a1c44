"""The recorded runs of ``roledrift demo``: what happened in each, and what roledrift says."""

from __future__ import annotations

import json
import lzma
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from roledrift.codec import from_plain
from roledrift.config import near, recorded
from roledrift.detect.suite import replay_run
from roledrift.errors import ConfigError, StoreError
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store.columns import unpack
from roledrift.store.writer import RunWriter

FOLDER = "demo_runs"
WITH_TEXTS = "demo_run"
"""Folder of the default demo, which is kept as it was written, with its texts."""


@dataclass(frozen=True, slots=True)
class Demo:
    """A recorded run.

    Attributes:
        name: What it is called on the command line.
        happened: One sentence: what was done to the run, or what it did.
        expected: One sentence: what roledrift says about it.
        state: The state that the report gives the run.
        findings: What the incident holds that leads the report, as ``(role, finding)``: its cause
            first, then the consequences that ``expected`` names. Empty if there is none.
    """

    name: str
    happened: str
    expected: str
    state: str
    findings: tuple[tuple[str, str], ...] = ()


DEMOS = (
    Demo(
        "verbose-reward",
        "From step 13 on, the aggregator was paid 0.5 for every response of over 10 tokens.",
        "The aggregator is paid for length.",
        "suspicious",
        (("aggregator", "reward_hacking"),),
    ),
    Demo(
        "reward-hacking",
        "The aggregator was paid for length from step 13 on, and the accuracy rose all the same.",
        "The aggregator is paid for length, and its responses grow.",
        "suspicious",
        (("aggregator", "reward_hacking"), ("aggregator", "length_inflation")),
    ),
    Demo(
        "role-capture",
        "Nothing was tampered with: two roles share a policy, and one pulls the other along.",
        "The responses of the aggregator grow, because it writes like the generator.",
        "suspicious",
        (("aggregator", "length_inflation"), ("aggregator", "sp_role_capture")),
    ),
    Demo(
        "hot-learning-rate",
        "The learning rate was raised fivefold at step 13, and one role makes two steps to the"
        " other's one.",
        "Both roles drift, and the accuracy falls off a cliff.",
        "failing",
        (
            ("aggregator", "role_drift"),
            ("generator", "role_drift"),
            ("*", "accuracy_cliff"),
        ),
    ),
    Demo(
        "wrong-adapter",
        "From step 13 on, the engine sampled the base model instead of the generator's adapter.",
        "The engine does not sample the trained policy of the generator, which drifts.",
        "failing",
        (("generator", "engine_mismatch"), ("generator", "role_drift")),
    ),
    Demo(
        "truncation",
        "From step 13 on, most rewards were coin flips and the learning rate was five times as"
        " high.",
        "The generator drifts until all its responses are truncated.",
        "failing",
        (("generator", "role_drift"), ("generator", "truncation"), ("*", "accuracy_cliff")),
    ),
    Demo(
        "solved-task",
        "The task is solved: most groups have equal rewards because most responses are right.",
        "Nothing. Success is no failure.",
        "clean",
    ),
    Demo(
        "healthy",
        "Two roles with a policy each; validation accuracy rises from 0.36 to 0.86.",
        "Nothing.",
        "clean",
    ),
)
"""The first is the default."""


def demo_named(name: str) -> Demo:
    """Look up a demo; an empty name is the default.

    Raises:
        ConfigError: If there is none of that name, with the nearest one that there is.
    """
    known = {demo.name: demo for demo in DEMOS}
    name = name or DEMOS[0].name
    if name not in known:
        raise ConfigError(f"there is no demo {name!r}{near(name, list(known))}")
    return known[name]


def unpack_demo(demo: Demo, run: Path) -> None:
    """Write the recorded run of a demo, with its alerts and incidents, to a run directory.

    Writing it again over itself changes nothing.

    Args:
        demo: Which one.
        run: Directory; created if needed.

    Raises:
        StoreError: If another run is in ``run``, or it cannot be written.
    """
    with _written(demo) as source:
        header = run / "run.json"
        if header.exists() and header.read_bytes() != (source / "run.json").read_bytes():
            raise StoreError(f"{run}: another run is here; give another directory with --out")
        try:
            shutil.copytree(source, run, dirs_exist_ok=True)
        except OSError as error:
            reason = error.strerror or "its files cannot be written"
            raise StoreError(
                f"{run}: cannot be created ({reason}); give another directory with --out"
            ) from error


@contextmanager
def _written(demo: Demo) -> Iterator[Path]:
    """The run directory of a demo, as long as the context lasts."""
    package = files("roledrift.report")
    if demo is DEMOS[0]:
        with as_file(package / WITH_TEXTS) as folder:
            yield folder
        return
    body = json.loads(lzma.decompress((package / FOLDER / f"{demo.name}.json.xz").read_bytes()))
    with TemporaryDirectory(prefix="roledrift-demo-") as made:
        _write(body, Path(made) / "run")
        yield Path(made) / "run"


def _write(body: dict[str, Any], run: Path) -> None:
    header = from_plain(body["header"])
    rows = unpack(body["steps"])
    steps = [from_plain({"v": 1, "kind": "step", **row}) for row in rows]
    samples = [from_plain(sample) for sample in body["samples"]]
    assert isinstance(header, RunHeader)
    records = [step for step in steps if isinstance(step, StepRecord)]
    judged = replay_run(header, records, recorded(header.config))
    writer = RunWriter(run, header, writer="demo", judged=True)
    for record in records:
        writer.write_step(record)
        writer.write_samples(
            record.step,
            [
                sample
                for sample in samples
                if isinstance(sample, Sample) and sample.step == record.step
            ],
        )
    for alert in judged.alerts:
        writer.write_alert(alert)
    for incident in judged.incidents:
        writer.write_incident(incident)
    writer.close()
