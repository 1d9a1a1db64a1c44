"""tinker-cookbook's ``iteration_<i>/train_rollout_summaries.jsonl`` and ``metrics.jsonl``.

Lengths and rewards of every step of every trajectory; texts are not in it. Environments that say
why a trajectory ended do so in the metrics of its last step (``stop/max_tokens``). A player of a
multi-player environment is the trajectory's index in its group: ``--roles '0=solver,1=verifier'``.
Without that all trajectories are one role's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.keys import Translator, passed_note
from roledrift.ingest.lines import documents
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.unpacking import present
from roledrift.ingest.values import integer, number, rows, section

_ITERATION = re.compile(r"iteration_(\d{1,12})\Z")
_SUMMARIES = "train_rollout_summaries.jsonl"
_POLICY = "policy"
_CUT = {"stop/max_tokens", "stop/max_sampled_tokens"}
_LABELS = {
    "source": "foreign series",
    "entropy": "estimated from the sampled tokens' log-probabilities, of the sampling policy",
}


def _sniff(path: Path) -> str | None:
    iterations = _iterations(path)
    return f"{len(iterations)} iteration folders with {_SUMMARIES}" if iterations else None


def _iterations(path: Path) -> dict[int, Path]:
    if not path.is_dir():
        return {}
    matched = (
        (_ITERATION.match(folder.name), present(folder / _SUMMARIES)) for folder in path.iterdir()
    )
    return {int(match[1]): file for match, file in matched if match and file}


def _read(job: Job) -> Events:
    job.facts.host = "tinker-cookbook"
    job.facts.routing = "shared"
    job.facts.notes["outputs"] = "lengths and rewards only, the log holds no texts"
    files = _iterations(job.source)
    logged = _logged(job)
    for step in sorted(set(files) | set(logged)):
        if step in logged:
            yield logged[step]
        if step in files:
            for where, row in documents(files[step], job.ledger):
                yield from _spans(row, step, where, job)
        yield StepDone(step)
    if not job.roles.rules:
        job.facts.notes["roles"] = "all trajectories taken for one role's; --roles '0=a,1=b' tells"


def _spans(row: Mapping[str, Any], step: int, where: str, job: Job) -> Iterator[SpanRow]:
    steps = rows(row.get("steps"))
    index = integer(row.get("traj_idx"))
    if not steps or index is None:
        job.ledger.skip("summary without steps or trajectory index", where, step=step)
        return
    role, slot = job.roles.resolve(str(index)) if job.roles.rules else (_POLICY, None)
    group = str(row.get("group_idx"))
    ends = [key for key in section(steps[-1], "metrics") if key.startswith("stop/")]
    for turn, step_of_trajectory in enumerate(steps):
        last = turn == len(steps) - 1
        yield SpanRow(
            step=step,
            role=role,
            slot=slot,
            turn=turn,
            prompt=group,
            episode=group if job.roles.rules else f"{group}|{index}",
            group=group,
            tokens=integer(step_of_trajectory.get("ac_len")),
            # Only the last turn can have been cut: nothing is sampled after it.
            truncated=(last and bool(set(ends) & _CUT)) if ends else None,
            reward=number(row.get("total_reward")),
        )


def _logged(job: Job) -> dict[int, Series]:
    translate = Translator()
    series: dict[int, Series] = {}
    file = job.source / "metrics.jsonl"
    if file.is_file():
        for where, row in documents(file, job.ledger):
            step = integer(row.get("step", row.get("progress/batch")))
            if step is None:
                job.ledger.skip("row without a step", where)
                continue
            groups, totals = translate(row)
            series[step] = Series(step, groups, totals, _LABELS)
    job.facts.notes.update(passed_note(translate.passed))
    return series


_NOWHERE = "not exported; watch it live (docs/integrations/custom.md)"
FORMAT = Format(
    "tinker",
    "tinker-cookbook rollout summaries",
    _sniff,
    _read,
    {gaps.TEXTS: _NOWHERE, gaps.LOGPROBS: _NOWHERE, gaps.ENTROPY: _NOWHERE},
)
