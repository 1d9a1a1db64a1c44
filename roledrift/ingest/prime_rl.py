"""prime-rl's traces, joined with its token exports.

``rollouts/step_<N>/train/{effective,all}/traces.jsonl`` has one episode per line with the agents'
names and texts; ``token_exports/step_<N>/rank_<R>.jsonl`` (opt in) has the trainer's and the
inference engine's log-probabilities without names. The two share nothing but the token ids: joined
by their hash they give chi², perplexity and entropy per role after the fact.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roledrift.ingest.form import Format, Job
from roledrift.ingest.keys import Translator, passed_note
from roledrift.ingest.lines import documents
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone, floats, pair
from roledrift.ingest.values import content, number, prompt_of, rows, section, text, truth, whole

_STEP = re.compile(r"step_(\d{1,12})\Z")
_SUBSETS = ("effective", "all")


@dataclass(slots=True)
class _Place:
    """Where a span's tokens lie in its trace."""

    row: SpanRow
    begin: int
    end: int


def _sniff(path: Path) -> str | None:
    found = _steps(path)
    return f"{len(found)} step folders with traces.jsonl under rollouts/" if found else None


def _steps(path: Path) -> dict[int, Path]:
    root = path if path.name == "rollouts" else path / "rollouts"
    if not root.is_dir():
        return {}
    there = ((_STEP.match(one.name), one) for one in root.iterdir())
    return {
        int(match[1]): one for match, one in there if match and any(one.glob("*/*/traces.jsonl"))
    }


def _read(job: Job) -> Events:
    job.facts.host = "prime-rl"
    job.facts.routing = "shared"
    base = job.source.parent if job.source.name == "rollouts" else job.source
    folders = _steps(job.source)
    logged = _logged(job, base / "metrics.jsonl")
    exported = False
    for step in sorted(set(folders) | set(logged)):
        if step in logged:
            yield logged[step]
        if step in folders:
            exports = sorted((base / "token_exports" / f"step_{step}").glob("rank_*.jsonl"))
            exported = exported or bool(exports)
            yield from _spans(folders[step], exports, step, job)
            yield from _evaluated(folders[step], step, job)
        yield StepDone(step)
    if not exported:
        job.facts.notes["log-probabilities"] = (
            "no token exports (trainer.enable_token_export): no chi², perplexity or entropy"
        )


def _spans(folder: Path, exports: list[Path], step: int, job: Job) -> Iterator[SpanRow]:
    files = [folder / "train" / subset / "traces.jsonl" for subset in _SUBSETS]
    file = next((one for one in files if one.is_file()), None)
    if file is None:
        return
    waiting: dict[bytes, list[list[_Place]]] = {}
    for where, episode in documents(file, job.ledger):
        for trace in rows(episode.get("traces")):
            ids, places = _trace(trace, episode, step, where, job)
            if not exports or not ids:
                yield from (place.row for place in places)
            elif places:
                waiting.setdefault(_key(ids), []).append(places)
    yield from _exported(waiting, exports, step, job)
    for left in waiting.values():
        for places in left:
            job.ledger.skip("trace without a token export", file.name, step=step)
            yield from (place.row for place in places)


def _exported(
    waiting: dict[bytes, list[list[_Place]]], exports: list[Path], step: int, job: Job
) -> Iterator[SpanRow]:
    """Spans whose tokens are exported; they leave ``waiting``. Equal traces pair up in order."""
    for export in exports:
        for where, body in documents(export, job.ledger):
            match = waiting.get(_key(body.get("token_ids")))
            if not match:
                job.ledger.skip("token export without a trace", where, step=step)
                continue
            for place in match.pop(0):
                _join(place, body, where, job)
                yield place.row


def _trace(
    trace: Mapping[str, Any], episode: Mapping[str, Any], step: int, where: str, job: Job
) -> tuple[list[int], list[_Place]]:
    """Token ids of a trace and the spans of its sampled messages."""
    agent = section(trace, "agent")
    name = text(agent.get("name")) or ""
    if agent.get("trainable") is False:
        job.ledger.skip("trace of an agent that is not trained", where)
        return [], []
    if not name:
        job.ledger.skip("trace without an agent's name", where, step=step)
        return [], []
    ids: list[int] = []
    places: list[_Place] = []
    messages: list[dict[str, Any]] = []
    calls = rows(trace.get("calls"))
    nodes = rows(trace.get("nodes"))
    sampled = sum(bool(node.get("sampled")) for node in nodes)
    for node in nodes:
        begin = len(ids)
        tokens = node.get("token_ids")
        ids.extend(tokens if isinstance(tokens, list) else ())
        message = section(node, "message")
        if node.get("sampled"):
            row = _row(node, trace, step, prompt_of(messages), job)
            row.turn = len(places)
            if len(calls) == sampled:
                finish = calls[len(places)].get("finish_reason")
                row.truncated = finish == "length" if isinstance(finish, str) else None
            row.episode = str(episode.get("id", where))
            row.prompt = str(section(episode, "group").get("id", row.episode))
            row.group = f"{row.prompt}|{name}"
            places.append(_Place(row, begin, len(ids)))
        messages.append(dict(message))
    return ids, places


def _row(
    node: Mapping[str, Any], trace: Mapping[str, Any], step: int, prompt: str, job: Job
) -> SpanRow:
    role, slot = job.roles.resolve(str(section(trace, "agent").get("name")), prompt)
    mask = floats(node.get("mask"))
    tokens = node.get("token_ids")
    length = len(tokens) if isinstance(tokens, list) else None
    advantages = floats(node.get("advantages"))
    return SpanRow(
        step=step,
        role=role,
        slot=slot,
        tokens=length if mask is None else int(np.nansum(mask != 0)),
        reward=_reward(trace),
        advantage=None if advantages is None or not advantages.size else float(advantages.mean()),
        text=content(section(node, "message").get("content")),
        prompt_text=prompt,
    )


def _reward(trace: Mapping[str, Any]) -> float | None:
    told = number(trace.get("reward"))
    if told is not None:
        return told
    parts = []
    for one in section(trace, "rewards").values():
        score = number(one.get("score")) if isinstance(one, Mapping) else number(one)
        weight = number(one.get("weight")) if isinstance(one, Mapping) else 1.0
        if score is not None:
            parts.append(score * (1.0 if weight is None else weight))
    return sum(parts) if parts else None


def _key(ids: object) -> bytes:
    if not isinstance(ids, list):
        return b""
    try:
        raw = np.asarray(ids, dtype=np.int64).tobytes()
    except (TypeError, ValueError, OverflowError):
        return b""
    return hashlib.blake2b(raw, digest_size=16).digest()


def _join(place: _Place, body: Mapping[str, Any], where: str, job: Job) -> None:
    """Add what the trainer computed for the span's tokens."""
    size = len(body["token_ids"])
    columns: dict[str, NDArray[np.float64]] = {}
    for name in ("loss_mask", "trainer_logprobs", "inference_logprobs", "entropy", "advantages"):
        found = floats(body.get(name))
        if found is not None and found.size == size:
            columns[name] = found[place.begin : place.end]
        elif name != "advantages":
            job.ledger.skip(f"token export without {name}", where, step=place.row.step)
    mask = columns.get("loss_mask", np.ones(place.end - place.begin)) != 0
    row = place.row
    mine = {name: column[mask] for name, column in columns.items()}
    a, b = mine.get("trainer_logprobs"), mine.get("inference_logprobs")
    entropy = mine.get("entropy")
    if a is not None and b is not None:
        row.pairs = (pair("rollout", a, b),)
    if a is not None:
        good = np.isfinite(a) & (np.isfinite(entropy) if entropy is not None else True)
        row.scored = int(good.sum())
        row.nonfinite = int((~good).sum())
        row.nll = float(-a[good].sum())
        row.entropy = float(entropy[good].sum()) if entropy is not None else None
    row.tokens = int(mask.sum())
    advantage = mine.get("advantages")
    if advantage is not None and np.isfinite(advantage).any():
        row.advantage = float(np.nanmean(advantage))


def _evaluated(folder: Path, step: int, job: Job) -> Iterator[Series]:
    rewards = []
    for file in sorted((folder / "eval").glob("all/traces.jsonl")):
        for _, episode in documents(file, job.ledger):
            for trace in rows(episode.get("traces")):
                reward = _reward(trace)
                if (
                    reward is not None
                    and truth(section(trace, "agent").get("trainable")) is not False
                ):
                    rewards.append(reward)
    if rewards:
        mean = sum(rewards) / len(rewards)
        # Only rewards of 0 and 1 are an accuracy.
        name = "val_accuracy" if set(rewards) <= {0.0, 1.0} else "eval_reward"
        yield Series(step, totals={name: mean})


def _logged(job: Job, file: Path) -> dict[int, Series]:
    """Both processes append rows of one step to the same file: they are merged."""
    translate = Translator()
    merged: dict[int, tuple[dict[str, dict[str, float]], dict[str, float]]] = {}
    for where, row in documents(file, job.ledger) if file.is_file() else ():
        step = whole(row.get("step"))
        if step is None:
            job.ledger.skip("row without a step", where)
            continue
        groups, totals = translate({k: v for k, v in row.items() if k not in ("step", "time")})
        mine = merged.setdefault(step, ({}, {}))
        for group, stats in groups.items():
            mine[0].setdefault(group, {}).update(stats)
        mine[1].update(totals)
    job.facts.notes.update(passed_note(translate.passed))
    labels = {"source": "foreign series"}
    return {step: Series(step, *both, labels) for step, both in merged.items()}


FORMAT = Format("prime-rl", "prime-rl traces and token exports", _sniff, _read)
