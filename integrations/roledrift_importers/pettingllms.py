"""PettingLLMs' environment logs: ``<mm-dd>/<HH-MM-SS>/train/<env>/<rollout>/env_agent.log``.

An entry is a header ``[time] [ENV:i] [ROLLOUT:j] [TURN:t] [AGENT:name]`` followed by a JSON object;
older versions write one file per phase, without ``ENV``. What an agent was rewarded with at the end
of a rollout, and how often a validation phase succeeded, is in the phase's ``summary.log``.
There is no step number: the time folders of the training phases are numbered from 0 in the order of
their names, which breaks across the turn of a year.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import head, lines, walk
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.values import number, section, text

_LOG = "env_agent.log"
_HEADER = re.compile(
    r"(?:\[[^\]]*\]\s*)??(?:\[ENV:(?P<env>[^\]]*)\]\s*)?\[ROLLOUT:(?P<rollout>[^\]]*)\]\s*"
    r"\[TURN:(?P<turn>\d{1,9})\]\s*\[AGENT:(?P<agent>[^\]]*)\]\s*(?P<rest>.*)\Z",
    re.DOTALL,
)
_SUMMARY = "summary.log"
_SUMMED = re.compile(
    r"(?:\[[^\]]*\]\s*)??\[ROLLOUT:(?P<rollout>[^\]]*)\]\s*(?P<rest>.*)\Z", re.DOTALL
)
_PHASES = ("train", "validate")
_DEPTH = 7
_MAX_ENTRY = 16 * 2**20


def _sniff(path: Path) -> str | None:
    if not path.is_dir():
        return None
    for folder, files in walk(path, depth=_DEPTH, limit=20_000):
        if _LOG in files and b"[AGENT:" in head(folder / _LOG):
            return f"{_LOG} files with [ENV:] [ROLLOUT:] [TURN:] [AGENT:] headers"
    return None


def _read(job: Job) -> Events:
    job.facts.host = "pettingllms"
    phases: dict[Path, list[Path]] = {}
    validated: dict[Path, None] = {}
    for folder, files in walk(job.source, depth=_DEPTH, ledger=job.ledger):
        if _LOG not in files:
            continue
        phase = next((parent for parent in folder.parents if parent.name in _PHASES), None)
        if phase is None or phase.name == "train":
            moment = phase.parent if phase else folder
            phases.setdefault(moment, []).append(folder / _LOG)
        else:
            job.ledger.skip("log of a validation phase", folder)
            validated.setdefault(phase.parent)
    job.facts.notes["steps"] = (
        f"{len(phases)} rollout phases numbered in the order of their folders; the log has no step"
    )
    moments = sorted(phases, key=lambda phase: phase.parts)
    accuracies = _accuracies(moments, list(validated), job)
    for step, moment in enumerate(moments):
        rewards, _ = _summary(moment, job)
        if step in accuracies:
            yield Series(step, totals={"val_accuracy": accuracies[step]})
        for file in phases[moment]:
            yield from _spans(file, step, rewards, job)
        yield StepDone(step)


Rewards = dict[tuple[str, str], Mapping[str, Any]]


def _summary(moment: Path, job: Job) -> tuple[Rewards, float | None]:
    """Rewards by environment and rollout, and the success rate of a validation, of a phase."""
    rewards: Rewards = {}
    validated = None
    file = moment / _SUMMARY
    if file.is_file():
        for _, _, body in entries(file, job.ledger, header=_SUMMED, mark="[ROLLOUT:"):
            agent_rewards = section(body, "agent_rewards")
            if body.get("termination_reason") == "validate_finished":
                rate = number(section(body, "extra_data").get("success_rate"))
                validated = rate if rate is not None else validated
            elif agent_rewards:
                rewards[str(body.get("env_idx")), str(body.get("rollout_idx"))] = agent_rewards
    return rewards, validated


def _accuracies(moments: list[Path], validated: list[Path], job: Job) -> dict[int, float]:
    """Accuracy by step: a validation belongs to the training phase before it."""
    by_step = {}
    for folder in sorted(validated, key=lambda phase: phase.parts):
        _, rate = _summary(folder, job)
        before = sum(moment.parts < folder.parts for moment in moments)
        if rate is not None and moments:
            by_step[max(before - 1, 0)] = rate
    return by_step


def _spans(file: Path, step: int, rewards: Rewards, job: Job) -> Iterator[SpanRow]:
    for where, entry, body in entries(file, job.ledger):
        extra = section(body, "extra_data")
        written = text(extra.get("agent_response"))
        if written is None:
            what = "generation that failed" if extra.get("error") else "entry without a response"
            job.ledger.skip(what, where, step=step)
            continue
        prompt = section(extra, "agent_prompt").get("text") or extra.get("agent_prompt")
        prompt = prompt if isinstance(prompt, str) else ""
        role, slot = job.roles.resolve(entry["agent"] or "unknown", prompt)
        if not entry["agent"]:
            job.ledger.skip("entry without an agent", where, step=step)
        final = rewards.get((entry["env"], entry["rollout"]), {}).get(entry["agent"])
        yield SpanRow(
            step=step,
            role=role,
            slot=slot,
            turn=int(entry["turn"]),
            prompt=entry["env"],
            episode=f"{entry['env']}|{entry['rollout']}",
            group=f"{entry['env']}|{entry['turn']}|{entry['agent']}",
            reward=number(extra.get("agent_reward", extra.get("reward", final))),
            text=written,
            prompt_text=prompt,
        )


def entries(
    file: Path, ledger: Ledger, *, header: re.Pattern[str] = _HEADER, mark: str = "[AGENT:"
) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """Header and JSON object of each entry; an entry that is not whole is counted.

    Args:
        file: The log.
        ledger: Where to count.
        header: How an entry begins; the group ``rest`` is the rest of the line.
        mark: What is in every header.
    """
    fields: dict[str, str] | None = None
    where = ""
    parts: list[str] = []
    size = 0
    for number_of, raw in lines(file, ledger):
        line = raw.decode("utf-8", "replace")
        begin = header.match(line) if mark in line else None
        if begin is None:
            size += len(line)
            if fields is not None and size <= _MAX_ENTRY:
                parts.append(line)
            continue
        if fields is not None:
            yield from _entry(where, fields, parts, ledger)
        fields, where, size = begin.groupdict(""), f"{file.name}:{number_of}", 0
        parts = [fields.pop("rest")]
    if fields is not None:
        yield from _entry(where, fields, parts, ledger)


def _entry(
    where: str, fields: dict[str, str], parts: list[str], ledger: Ledger
) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    joined = "\n".join(parts)
    start = joined.find("{")
    try:
        body, _ = json.JSONDecoder().raw_decode(joined, start) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        yield where, fields, body
    else:
        ledger.skip("entry without a whole JSON object", where)


_NOWHERE = "not logged; watch it live (docs/integrations/multi_agent.md)"
FORMAT = Format(
    "pettingllms",
    "PettingLLMs environment logs",
    _sniff,
    _read,
    {
        gaps.LENGTHS: _NOWHERE,
        gaps.LOGPROBS: _NOWHERE,
        gaps.ENTROPY: _NOWHERE,
        gaps.REWARDS: "keep summary.log beside the environments' folders",
        gaps.VALIDATION: "validation phases, with their summary.log",
    },
)
