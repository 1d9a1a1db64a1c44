"""What is written down: one frozen dataclass per kind of line in a run directory."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from roledrift.sums import EVERYONE, Distinct, Mean, Profile, Summable, Sums
from roledrift.workflow import Workflow

SCHEMA = 1
"""Version of the run directory format that this code writes."""

State = Literal["ok", "watch", "drift", "no verdict"]
Level = Literal["INFO", "WARN", "ERROR"]
AlertState = Literal["open", "escalated", "closed"]
Severity = Literal["failing", "input problem", "suspicious"]
"""How bad a finding is, worst first. ``failing``: the run is losing, or about to lose, what it has.
``input problem``: what is measured or sampled is not what is trained. ``suspicious``: real and
unexplained, but no damage has been shown."""

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""All severities, worst first."""

LEVEL_OF: Mapping[Severity, Level] = {
    "failing": "ERROR",
    "input problem": "ERROR",
    "suspicious": "WARN",
}
"""The log level at which a finding of each severity is reported."""

Layer = Literal["setting", "input", "movement", "text", "outcome"]
"""Where in the chain of cause and effect a finding stands; earlier layers cause later ones."""

LAYERS: tuple[Layer, ...] = get_args(Layer)
"""All layers, causes first."""
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
        found = self._made.get(name)
        if found is None:
            one = self.body[name]
            known: dict[str, Any] = {
                key: tuple(map(float, value)) if isinstance(value, list) else float(value)
                for key, value in one.items()
                if key in _STAT_NAMES
            }
            found = self._made[name] = Stat(**known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.body)

    def __len__(self) -> int:
        return len(self.body)

    def __contains__(self, name: object) -> bool:
        return name in self.body

    def __repr__(self) -> str:
        return repr(dict(self))


_STAT_NAMES = frozenset(one.name for one in fields(Stat))


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
        its = self.groups.get(group)
        if its is None:
            return None
        if type(its) is StoredStats:
            one = its.body.get(name)
            return None if one is None else float(one["mean"])
        found = self.stat(group, name)
        return None if found is None else found.mean

    def counted(self, group: str, name: str) -> tuple[float, float] | None:
        """What a statistic is the mean of, in number, and the mean; None if not measured."""
        its = self.groups.get(group)
        if type(its) is StoredStats:
            one = its.body.get(name)
            return None if one is None else (float(one["n"]), float(one["mean"]))
        found = self.stat(group, name)
        return None if found is None else (found.n, found.mean)


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
    """

    policy: str
    labels: tuple[str, ...]
    products: tuple[tuple[float, ...], ...]
    method: str = "exact"
    relative_error: float = 0.0
    halves: Mapping[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a detector thinks of one role right now.

    Attributes:
        detector: Name of the detector.
        role: Role judged.
        state: ``ok``, ``watch``, ``drift``, or ``no verdict`` when evidence is missing.
        finding: What it found, in the detector's own terms: ``length_inflation``; a detector that
            has only part of its evidence names the lesser finding (``role_drift``).
        statistic: Name of the statistic judged.
        value: Its value.
        threshold: Where ``drift`` begins.
        baseline: Baseline value that ``value`` is judged against.
        onset: First step of the present excursion.
        toward: The other role that it moves toward, where the finding has one.
        reason: One sentence with the numbers, for people.
        needs: What is missing for a verdict.
        evidence: Evidence gathered for the finding, in the units of the detector's decision.
        chance: What that evidence is worth: how much was needed, and how often chance alone gets
            there. Empty if the detector states no rate.
        severity: How bad the finding is; empty unless the state is ``drift``.
        cause: What brought it about, where the detector knows: "the learning rate was raised x5".
    """

    detector: str
    role: str
    state: State
    finding: str = ""
    statistic: str = ""
    value: float | None = None
    threshold: float | None = None
    baseline: float | None = None
    onset: int | None = None
    toward: str = ""
    reason: str = ""
    needs: tuple[str, ...] = ()
    evidence: float | None = None
    chance: str = ""
    severity: Severity | None = None
    cause: str = ""

    @property
    def applies(self) -> bool:
        """False if the detector is not about this role at all, whatever evidence there were."""
        return not (self.state == "no verdict" and self.reason.startswith("does not apply"))


@dataclass(frozen=True, slots=True)
class TextPair:
    """What a role wrote before the onset of a finding, and what it writes now.

    Attributes:
        prompt: Name of the problem of both texts; empty if they answer different problems.
        before: The older text, clipped; likewise ``after``.
    """

    before_step: int
    after_step: int
    before: str
    after: str
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A transition of a finding: it opened, escalated or closed.

    The same data gives the same ``id`` live and replayed, so live and offline agree.

    Attributes:
        id: Hash of detector, role and onset.
        step: Step at which the transition happened.
        onset: First bad step.
        stops: True if the user opted in to stop the run on this finding.
        advice: What to do, most effective first, with the host trainer's own configuration.
        evidence: As in :class:`Verdict`; likewise ``chance``.
        pairs: Texts of the role before the onset and now; only in alerts that were raised live.
        checkpoint: The newest checkpoint from before the onset, if the host told of any.
        severity: How bad the finding is; None in runs recorded before severities existed (see
            :attr:`graded`).
        layer: Where the finding stands between cause and effect.
        cause: As in :class:`Verdict`.
    """

    id: str
    detector: str
    finding: str
    role: str
    policy: str
    level: Level
    state: AlertState
    step: int
    onset: int
    title: str
    text: str
    statistic: str = ""
    value: float | None = None
    threshold: float | None = None
    baseline: float | None = None
    advice: tuple[str, ...] = ()
    stops: bool = False
    time: str = ""
    evidence: float | None = None
    chance: str = ""
    pairs: tuple[TextPair, ...] = ()
    checkpoint: Checkpoint | None = None
    severity: Severity | None = None
    layer: Layer | None = None
    cause: str = ""

    @property
    def graded(self) -> Severity:
        """The severity; for alerts recorded before there was one, the one their level implies."""
        if self.severity is not None:
            return self.severity
        return "failing" if self.level == "ERROR" else "suspicious"


@dataclass(frozen=True, slots=True)
class Consequence:
    """A finding that followed the cause of an incident.

    Attributes:
        alert: Id of its alert.
        onset: First bad step; ``step``: when it was reported.
        text: What happened, as a clause: "aggregator: answers x2.3 since step 27".
        state: ``open``, or ``closed`` once it has passed.
    """

    alert: str
    role: str
    finding: str
    severity: Severity
    onset: int
    step: int
    text: str
    state: Literal["open", "closed"] = "open"


@dataclass(frozen=True, slots=True)
class Incident:
    """What a person is told about a run: one cause and what followed from it.

    Computed once, live and in replay alike, and used word for word by every output.

    Attributes:
        id: Id of the alert that opened it; it stays when the run gets sicker.
        step: Step at which this state of the incident was reached.
        state: ``open``, or ``closed`` once all its findings have passed.
        severity: The worst of its findings.
        role: Role of the cause; ``"*"`` for all roles.
        finding: What the cause is called.
        onset: First bad step of the cause.
        reported: Step of the first alert.
        sentence: The incident in one or two sentences; the headline everywhere.
        cause: The setting that changed, if one did; else empty.
        consequences: Further findings, in order of onset.
        damage: What the run has lost so far, in words; empty if nothing yet.
        evidence: The numbers behind the cause, in one sentence.
        advice: The one plan of action, first things first.
        checkpoint: The checkpoint to return to, if the host reported one from before the onset.
        alerts: Ids of its alerts, that of the cause first.
    """

    id: str
    step: int
    state: Literal["open", "closed"]
    severity: Severity
    role: str
    finding: str
    onset: int
    reported: int
    sentence: str
    cause: str = ""
    consequences: tuple[Consequence, ...] = ()
    damage: str = ""
    evidence: str = ""
    advice: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    alerts: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[bool, int, int, bool]:
        """Sort key: open before closed, then the worst, the earliest, the more specific."""
        worst = SEVERITIES.index(self.severity)
        return self.state == "closed", worst, self.onset, self.role == EVERYONE


def alert_id(detector: str, role: str, onset: int) -> str:
    """Stable id of an alert: the same finding at the same onset has the same id everywhere."""
    return hashlib.sha256(f"{detector}|{role}|{onset}".encode()).hexdigest()[:8]


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


@dataclass(frozen=True, slots=True)
class Decision:
    """What the host trainer is asked to do after a step.

    Attributes:
        stop: True if a finding that the user opted in to stop on has been raised.
        alerts: Transitions of this step.
        reason: The title of the alert that stops the run; empty otherwise.
    """

    stop: bool = False
    alerts: tuple[Alert, ...] = ()
    reason: str = ""


def summarise(sums: Sums) -> dict[str, dict[str, Stat]]:
    """Sums as finished statistics, by group and name, both sorted."""
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
