"""prime-rl's traces, joined with its token exports.

``rollouts/step_<N>/train/{effective,all}/traces.jsonl`` has one episode per line with the agents'
names and texts; ``token_exports/step_<N>/rank_<R>.jsonl`` (opt in) has the trainer's and the
inference engine's log-probabilities without names. The two share nothing but the token ids: joined
by their hash they give chi², perplexity and entropy per role after the fact.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.keys import Translator, passed_note
from roledrift.ingest.lines import documents
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone, floats, pair
from roledrift.ingest.unpacking import matching, present
from roledrift.ingest.values import content, integer, number, prompt_of, rows, section, text, truth

_STEP = re.compile(r"step_(\d{1,12})\Z")
_SUBSETS = ("effective", "all")


@dataclass(slots=True)
class _Place:
    """Where a span's tokens lie in its branch."""

    row: SpanRow
    begin: int
    end: int


@dataclass(slots=True)
class _Branch:
    """A path through a trace from its root to a leaf: one training sample.

    Attributes:
        ids: Token ids of the whole path.
        places: The spans that are trained on in it: an answer that several branches share counts
            in the first of them.
    """

    ids: NDArray[np.int64]
    places: list[_Place]


def _sniff(path: Path) -> str | None:
    steps = _steps(path)
    return f"{len(steps)} step folders with traces.jsonl under rollouts/" if steps else None


def _steps(path: Path) -> dict[int, Path]:
    root = path if path.name == "rollouts" else path / "rollouts"
    if not root.is_dir():
        return {}
    matched = ((_STEP.match(folder.name), folder) for folder in root.iterdir())
    return {int(match[1]): folder for match, folder in matched if match and _holds_traces(folder)}


def _holds_traces(folder: Path) -> bool:
    # One that may not be read counts: reading it will say so.
    return any(folder.glob("*/*/traces.jsonl*")) or not os.access(folder, os.R_OK | os.X_OK)


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
            exports = matching(base / "token_exports" / f"step_{step}", "rank_*.jsonl")
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
    file = next((traces for file in files if (traces := present(file))), None)
    if file is None:
        return
    waiting: dict[bytes, list[_Branch]] = {}
    for where, episode in documents(file, job.ledger):
        for trace in rows(episode.get("traces")):
            for branch in _branches(trace, episode, step, where, job):
                if exports and branch.ids.size:
                    waiting.setdefault(_key(branch.ids), []).append(branch)
                else:
                    yield from (place.row for place in branch.places)
    yield from _exported(waiting, exports, step, job)
    for left in waiting.values():
        for branch in left:
            job.ledger.skip("trace without a token export", file.name, step=step)
            yield from (place.row for place in branch.places)


def _exported(
    waiting: dict[bytes, list[_Branch]], exports: list[Path], step: int, job: Job
) -> Iterator[SpanRow]:
    """Spans whose tokens are exported; they leave ``waiting``. Equal branches pair up in order."""
    for export in exports:
        for where, body in documents(export, job.ledger):
            ids = _ids(body.get("token_ids"))
            match = waiting.get(_key(ids)) or _longer(waiting, ids)
            if not match:
                job.ledger.skip("token export without a trace", where, step=step)
                continue
            branch = match.pop(0)
            if branch.ids.size > ids.size:
                job.ledger.skip("token export cut at the trainer's length", where, step=step)
            for place in branch.places:
                if place.begin < ids.size:
                    _join(place, body, where, job)
                yield place.row


def _longer(waiting: dict[bytes, list[_Branch]], ids: NDArray[np.int64]) -> list[_Branch] | None:
    """Branches that begin with ``ids``: the trainer cuts what is longer than its sequences."""
    for branches in waiting.values():
        if (
            branches
            and branches[0].ids.size > ids.size
            and (branches[0].ids[: ids.size] == ids).all()
        ):
            return branches if ids.size else None
    return None


def _branches(
    trace: Mapping[str, Any], episode: Mapping[str, Any], step: int, where: str, job: Job
) -> Iterator[_Branch]:
    """The branches of a trace, each with the sampled messages that no earlier one has."""
    agent = section(trace, "agent")
    name = text(agent.get("name")) or ""
    if agent.get("trainable") is False:
        job.ledger.skip("trace of an agent that is not trained", where)
        return
    if not name:
        job.ledger.skip("trace without an agent's name", where, step=step)
        return
    nodes = rows(trace.get("nodes"))
    finish = _finish(trace, nodes)
    counted: set[int] = set()
    for path in _paths(nodes):
        parts: list[NDArray[np.int64]] = []
        places: list[_Place] = []
        messages: list[dict[str, Any]] = []
        begin = turn = 0
        for index in path:
            node = nodes[index]
            ids = _ids(node.get("token_ids"))
            parts.append(ids)
            if node.get("sampled"):
                if index not in counted:
                    row = _row(node, trace, step, prompt_of(messages), job)
                    row.turn, row.truncated = turn, finish.get(index)
                    row.episode = str(episode.get("id", where))
                    row.prompt = str(section(episode, "group").get("id", row.episode))
                    row.group = f"{row.prompt}|{name}"
                    places.append(_Place(row, begin, begin + ids.size))
                counted.add(index)
                turn += 1
            begin += ids.size
            messages.append(dict(section(node, "message")))
        if places:
            yield _Branch(np.concatenate(parts), places)


def _paths(nodes: list[dict[str, Any]]) -> list[list[int]]:
    """Node numbers from a root to each leaf; without parents the nodes are one chain."""
    if not any("parent" in node for node in nodes):
        return [list(range(len(nodes)))] if nodes else []
    above: list[int | None] = []
    for index, node in enumerate(nodes):
        parent = integer(node.get("parent"))
        # A parent stands before its children, so that no path is a circle.
        above.append(parent if parent is not None and 0 <= parent < index else None)
    parents = set(above)
    leaves = [index for index in range(len(nodes)) if index not in parents]
    paths = []
    for leaf in leaves:
        path: list[int] = []
        at: int | None = leaf
        while at is not None:
            path.append(at)
            at = above[at]
        paths.append(path[::-1])
    return paths


def _finish(trace: Mapping[str, Any], nodes: list[dict[str, Any]]) -> dict[int, bool]:
    """Whether the sampled nodes were cut off, where their calls say so."""
    calls = rows(trace.get("calls"))
    sampled = [index for index, node in enumerate(nodes) if node.get("sampled")]
    if not any("node" in call for call in calls):
        placed = list(zip(sampled, calls, strict=True)) if len(calls) == len(sampled) else []
    else:  # a call that failed belongs to no node
        placed = [(at, call) for call in calls if (at := integer(call.get("node"))) is not None]
    return {
        index: reason == "length"
        for index, call in placed
        if isinstance(reason := call.get("finish_reason"), str)
    }


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
    stated = number(trace.get("reward"))
    if stated is not None:
        return stated
    parts = []
    for part in section(trace, "rewards").values():
        score = number(part.get("score")) if isinstance(part, Mapping) else number(part)
        weight = number(part.get("weight")) if isinstance(part, Mapping) else 1.0
        if score is not None:
            parts.append(score * (1.0 if weight is None else weight))
    return sum(parts) if parts else None


def _ids(values: object) -> NDArray[np.int64]:
    """Token ids; empty if the list is not one of whole numbers."""
    try:
        array = np.asarray(values if isinstance(values, list) else [], dtype=np.int64)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=np.int64)
    return array if array.ndim == 1 else np.empty(0, dtype=np.int64)


def _key(ids: NDArray[np.int64]) -> bytes:
    return hashlib.blake2b(ids.tobytes(), digest_size=16).digest()


def _join(place: _Place, body: Mapping[str, Any], where: str, job: Job) -> None:
    """Add what the trainer computed for the span's tokens."""
    size = len(body["token_ids"])
    columns: dict[str, NDArray[np.float64]] = {}
    for name in ("loss_mask", "trainer_logprobs", "inference_logprobs", "entropy", "advantages"):
        values = floats(body.get(name))
        if values is not None and values.size == size:
            columns[name] = values[place.begin : place.end]
        elif name != "advantages":
            job.ledger.skip(f"token export without {name}", where, step=place.row.step)
    mask = columns.get("loss_mask", np.ones(place.end - place.begin)) != 0
    row = place.row
    masked = {name: column[mask] for name, column in columns.items()}
    a, b = masked.get("trainer_logprobs"), masked.get("inference_logprobs")
    entropy = masked.get("entropy")
    if a is not None and b is not None:
        row.pairs = (pair("rollout", a, b),)
    if a is not None:
        good = np.isfinite(a) & (np.isfinite(entropy) if entropy is not None else True)
        row.scored = int(good.sum())
        row.nonfinite = int((~good).sum())
        row.nll = float(-a[good].sum())
        row.entropy = float(entropy[good].sum()) if entropy is not None else None
    row.tokens = int(mask.sum())
    advantage = masked.get("advantages")
    if advantage is not None and np.isfinite(advantage).any():
        row.advantage = float(np.nanmean(advantage))


def _evaluated(folder: Path, step: int, job: Job) -> Iterator[Series]:
    rewards = []
    for file in matching(folder / "eval" / "all", "traces.jsonl"):
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
        step = integer(row.get("step"))
        if step is None:
            job.ledger.skip("row without a step", where)
            continue
        groups, totals = translate({k: v for k, v in row.items() if k not in ("step", "time")})
        row_of_step = merged.setdefault(step, ({}, {}))
        for group, stats in groups.items():
            row_of_step[0].setdefault(group, {}).update(stats)
        row_of_step[1].update(totals)
    job.facts.notes.update(passed_note(translate.passed))
    labels = {"source": "foreign series"}
    return {step: Series(step, *both, labels) for step, both in merged.items()}


FORMAT = Format(
    "prime-rl",
    "prime-rl traces and token exports",
    _sniff,
    _read,
    {
        gaps.LOGPROBS: "trainer.enable_token_export = true",
        gaps.ENTROPY: "trainer.enable_token_export = true",
        gaps.VALIDATION: "an evaluation whose rewards are 0 or 1",
    },
)
