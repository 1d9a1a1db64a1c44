"""The records of a run directory: one frozen dataclass per kind of line."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from roledrift.sums import Distinct, Mean, Profile, Summable, Sums
from roledrift.workflow import Workflow

SCHEMA = 1
"""Version of the run directory format that this code writes."""

NOTE_BASE = "base model"
"""Note of a run that evaluates the base model alone: it is no run of the paper's grid."""

NOTE_TRANSFER = "transfer"
"""Note of a run that evaluates an adapter of a single role: the roles that the adapter acts for."""

NOTE_SET = "validation set"
"""Note that names the problems behind the validation accuracy: different ones are not averaged."""

LENGTH_UNIT = "unit of length"
"""Label of a step whose ``length`` is in ``characters``, because tokens were not counted."""

Finish = Literal["stop", "length", "unknown"]


@dataclass(frozen=True, slots=True)
class Stat:
    """A finished statistic.

    Attributes:
        n: How many tokens, spans or groups it is the mean of.
        mean: The statistic itself.
        sd: Standard deviation of the row values (population), if rows were seen.
        low: Smallest row value.
        high: Largest row value.
        p05: 5th percentile, for lengths; likewise ``p50`` and ``p95``.
        p01: 1st percentile, for probability ratios; likewise ``p99``.
        shares: Mean share of each bucket of words, for ``words``.
    """

    n: float
    mean: float
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    p05: float | None = None
    p50: float | None = None
    p95: float | None = None
    p01: float | None = None
    p99: float | None = None
    shares: tuple[float, ...] | None = None


Stats = Mapping[str, Stat]


class StoredStats(Mapping[str, Stat]):
    """Statistics as they were stored, each made a :class:`Stat` when it is asked for.

    A long run has hundreds of thousands, and what looks at them mostly wants one number of each.

    Args:
        body: Name to the numbers of a statistic, ``n`` and ``mean`` among them.
    """

    __slots__ = ("_made", "body")

    def __init__(self, body: Mapping[str, Mapping[str, Any]]) -> None:
        self.body = body
        self._made: dict[str, Stat] = {}

    def __getitem__(self, name: str) -> Stat:
        stat = self._made.get(name)
        if stat is None:
            plain = self.body[name]
            known: dict[str, Any] = {
                key: tuple(map(float, value)) if isinstance(value, list) else float(value)
                for key, value in plain.items()
                if key in _STAT_NAMES
            }
            stat = self._made[name] = Stat(**known)
        return stat

    def __iter__(self) -> Iterator[str]:
        return iter(self.body)

    def __len__(self) -> int:
        return len(self.body)

    def __contains__(self, name: object) -> bool:
        return name in self.body

    def __repr__(self) -> str:
        return repr(dict(self))


_STAT_NAMES = frozenset(field.name for field in fields(Stat))


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Everything measured in one step by one writer.

    Attributes:
        step: Optimizer iteration of the host trainer.
        writer: Name of the process that wrote the line; one per process start.
        seq: Number of the line within its writer, from 0.
        time: UTC time, ISO 8601.
        groups: ``{"generator": {"length": Stat, ...}, "generator/0": ..., "*": ...}``.
        totals: Numbers of the whole step, for example ``reward`` or ``val_accuracy``.
        gradients: Gram matrices of role gradients, one per policy, if they were measured.
        missing: Columns that probes asked for in vain.
        faults: Things that went wrong in flight, with how often; the run went on.
        labels: Facts about how a statistic came about; for each kind of comparison its two sides,
            their temperatures and the optimizer steps between (:func:`roledrift.spans.describe`).
        cost_ms: What watching cost in this step, by part.
        checkpoints: The host's newest checkpoints, in the first record after one was written.
        solved: Per validation problem, in fixed order, ``"1"`` if it was solved, else ``"0"``.
        base: As ``groups``, of the policy before training; in the first record alone.
    """

    step: int
    writer: str = ""
    seq: int = 0
    time: str = ""
    groups: Mapping[str, Stats] = field(default_factory=dict)
    totals: Mapping[str, float] = field(default_factory=dict)
    gradients: tuple[GramRecord, ...] = ()
    missing: tuple[str, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    cost_ms: Mapping[str, float] = field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...] = ()
    solved: str = ""
    base: Mapping[str, Stats] = field(default_factory=dict)

    def stat(self, group: str, name: str) -> Stat | None:
        """The statistic ``name`` of a role, slot or ``"*"``; None if it was not measured."""
        return self.groups.get(group, {}).get(name)

    def mean(self, group: str, name: str) -> float | None:
        """Mean of a statistic; None if it was not measured."""
        stats = self.groups.get(group)
        if stats is None:
            return None
        if type(stats) is StoredStats:
            body = stats.body.get(name)
            return None if body is None else float(body["mean"])
        stat = stats.get(name)
        return None if stat is None else stat.mean

    def counted(self, group: str, name: str) -> tuple[float, float] | None:
        """What a statistic is the mean of, in number, and the mean; None if not measured."""
        stats = self.groups.get(group)
        if type(stats) is StoredStats:
            body = stats.body.get(name)
            return None if body is None else (float(body["n"]), float(body["mean"]))
        stat = self.stat(group, name)
        return None if stat is None else (stat.n, stat.mean)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of the host that a run can go back to.

    Attributes:
        step: Steps done when it was written.
        path: Where it lies: a path or a URL.
    """

    step: int
    path: str


@dataclass(frozen=True, slots=True)
class GramRecord:
    """Inner products of the gradients of groups that share a policy.

    Attributes:
        policy: The policy whose parameters the gradients belong to.
        labels: Groups: roles, or ``role/slot``.
        products: Rows of ``<g_i, g_j>``, as many as labels.
        method: ``exact``, ``folded`` (with its stated error) or ``boundary``.
        relative_error: Stated relative standard error of a norm; 0 for exact methods.
        halves: Of a role with several slots whose gradients were also split by problem: inner
            products of its slots' gradients on either half of the step's problems, in the order
            slot 0 half 0, slot 0 half 1, slot 1 half 0, ... Rows and columns of a slot add up to
            those in ``products``. A role of which a part was not seen is left out.
        closure: ``|sum of the groups - .grad| / max(|.grad|, sqrt(sum |group|^2))`` over the
            weights that are covered; None where that was not checked.
        covered: Share of the norm of the policy's whole gradient that these weights hold; None
            where it is not known.
        bypassed: Layers whose gradient was not seen because something used their weight without
            calling them. They count as not covered.
    """

    policy: str
    labels: tuple[str, ...]
    products: tuple[tuple[float, ...], ...]
    method: str = "exact"
    relative_error: float = 0.0
    halves: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    closure: float | None = None
    covered: float | None = None
    bypassed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One span's text with what is known about it.

    Attributes:
        prompt: Stable name of the problem; the same problem has the same name all run long.
        prompt_text: The prompt as the role saw it; may be empty.
        flags: Short words such as ``canary``, ``longest``.
    """

    step: int
    role: str
    text: str
    slot: int = 0
    turn: int = 0
    policy: str = ""
    prompt: str = ""
    episode: str = ""
    prompt_text: str = ""
    tokens: int = 0
    finish: Finish = "unknown"
    reward: float = math.nan
    advantage: float = math.nan
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a run is: written once.

    Attributes:
        run: Name of the run.
        workflow: Roles, slots and routing.
        created: UTC time, ISO 8601.
        host: Trainer that was watched, for example ``trl.GRPOTrainer``.
        task: Task name, if known; likewise ``scale`` and ``seed``.
        config: The monitor's configuration, as plain values.
        versions: Versions of roledrift, Python and the libraries in use.
        notes: Anything the host wants the report to say, for example a labelled stress.
        yardsticks: Role to stream to centre and error of the starts of earlier runs beside it,
            which its own start is held against; empty without such runs.
    """

    run: str
    workflow: Workflow
    created: str = ""
    host: str = ""
    task: str = ""
    scale: str = ""
    seed: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    yardsticks: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict)


def summarise(sums: Sums) -> dict[str, dict[str, Stat]]:
    """Finish sums: turn them into statistics, sorted by group and name."""
    groups: dict[str, dict[str, Stat]] = {}
    for key in sorted(sums):
        groups.setdefault(key.group, {})[key.name] = _stat(sums[key])
    return groups


def _stat(value: Summable) -> Stat:
    if isinstance(value, Distinct):
        return Stat(n=value.n, mean=float(len(value.kinds)))
    if isinstance(value, Profile):
        # Four digits resolve what a few thousand words can tell, and keep the line short.
        shares = tuple(round(share / value.n, 4) for share in value.shares) if value.n else None
        return Stat(value.n, value.total / value.n if value.n else math.nan, shares=shares)
    mean = value.total / value.n if value.n else math.nan
    if isinstance(value, Mean) or not value.n:
        return Stat(n=value.n, mean=mean)
    variance = value.square / value.n - mean * mean
    sd = math.sqrt(max(variance, 0.0)) if math.isfinite(variance) else math.nan
    stat = Stat(n=value.n, mean=mean, sd=sd, low=value.low, high=value.high)
    if value.bins is None:
        return stat
    if value.bins.scale == "ratios":
        # The middle of an extreme's bin may lie beyond the extreme, which is known exactly.
        p01, p50, p99 = (
            min(max(value.bins.quantile(q), value.low), value.high) for q in (0.01, 0.5, 0.99)
        )
        return replace(stat, p01=p01, p50=p50, p99=p99)
    p05, p50, p95 = (value.bins.quantile(q) for q in (0.05, 0.5, 0.95))
    return replace(stat, p05=p05, p50=p50, p95=p95)
