"""Our recorded multi-role runs as the logs that other monitors read.

Each run becomes a log of all roles together and one log per role, in TRL's keys. The runs, and what
is wrong with them, are those of :mod:`benchmarks.detection` that results are reported on; what
roledrift says of them with their roles is taken from its results.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.detection.recordings import Recording, load
from benchmarks.peers.scenarios import Log, Row
from roledrift import StepRecord

RESULTS = Path(__file__).parents[1] / "detection" / "results.json"
_NAME = re.compile(r"(.+)-b(\d+)-(\d+)\Z")
_FAILURES = ("dynamics", "from the start", "input")

_KEYS = {
    "reward": "reward",
    "frac_reward_zero_std": "zero_variance",
    "entropy": "entropy",
    "kl": "update.k3",
    "clip_ratio/region_mean": "clip_fraction",
    "completions/mean_length": "length",
    "completions/clipped_ratio": "truncated",
    "sampling/sampling_logp_difference/mean": "rollout.log_ppl_abs_diff",
    "sampling/sampling_logp_difference/max": "rollout.peak",
}
"""TRL's key to the statistic of a record. The divergence is what an update moved: there is no
reference policy in these runs."""


@dataclass(frozen=True, slots=True)
class Run:
    """A recorded run.

    Attributes:
        family: What is wrong with it.
        kind: ``failure``, ``healthy`` or ``hard negative``.
        findings: What roledrift said of it with its roles, ``severity: finding (role)``.
        together: The log of all roles.
        apart: One log per role.
    """

    name: str
    family: str
    kind: str
    findings: tuple[str, ...]
    together: Log
    apart: tuple[Log, ...]


def runs() -> Iterator[Run]:
    """The recorded runs; of failures those that had an effect. Natural captures are left out."""
    for run in json.loads(RESULTS.read_text())["runs"]:
        match = _NAME.match(run["run"])
        kind = "failure" if run["family"] in _FAILURES else run["family"]
        if match is None or kind == "capture" or (kind == "failure" and not run["counts"]):
            continue
        recording = load(match[1], int(match[3]), base=int(match[2]))
        logs = [_log(recording, (role,)) for role in recording.workflow.role_names]
        together = _log(recording, recording.workflow.role_names)
        yield Run(run["run"], run["family"], kind, tuple(run["told"]), together, tuple(logs))


def _log(recording: Recording, roles: Sequence[str]) -> Log:
    name = roles[0] if len(roles) == 1 else "*"
    rows = tuple(_row(step, name, roles) for step in recording.steps)
    return Log("recorded", f"{recording.scenario} {name}", recording.seed, rows, ())


def _row(record: StepRecord, group: str, roles: Sequence[str]) -> Row:
    values = {key: record.mean(group, statistic) for key, statistic in _KEYS.items()}
    reward = record.stat(group, "reward")
    norms = [record.totals.get(f"grad_norm/{role}") for role in roles]
    known = [norm for norm in norms if norm is not None]
    values |= {
        "reward_std": None if reward is None else reward.sd,
        "grad_norm": math.sqrt(sum(norm**2 for norm in known)) if known else None,
        "learning_rate": record.totals.get(f"lr/{roles[0]}", record.totals.get("lr")),
        "eval/accuracy": record.totals.get("val_accuracy"),
    }
    return {
        "step": record.step,
        **{key: value for key, value in values.items() if value is not None},
    }
