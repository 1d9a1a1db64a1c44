"""``sp_role_capture``: under a shared policy one role has begun to write like another.

A role's profile is what its records say about its texts: the log of its length and the shares of
texts with a certain shape. Between the start profiles of two roles lies a line; the shift of role
``a`` toward role ``b`` is how far ``a`` has come along it: 0 at its own start, 1 at the start of
``b``. Each feature is scaled by its distance between the two roles, so the projection on that line
is the mean over features of the share of the way that each has gone.

The share of the gradient mass that a role holds is shown but never judged: one role holding 90 % of
it is ordinary in healthy shared runs. What this version cannot tell apart is a reward that pays a
role for long or solver-like text; the reason says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roledrift.config import BaselineConfig, Config
from roledrift.detect.baseline import LENGTH, SHARE, Baseline, Warmup, measured, more_steps
from roledrift.records import State, StepRecord, Verdict
from roledrift.workflow import Workflow

NAME = "sp_role_capture"
_LENGTH = "length"
TEXT_FEATURES = ("terse", "boxed", "bare_stamp", "code_fence", "verdict_tag", "hedging")
"""Shares of texts with a shape, as recorded per role."""

_TEXT_NEED = "texts (terse, boxed, code_fence, ... of both roles)"


class _Profile:
    """One role's features: their baselines and, in the current record, their values."""

    def __init__(self, baseline: BaselineConfig) -> None:
        self._warmups = {
            name: Warmup(baseline, LENGTH if name == _LENGTH else SHARE)
            for name in (_LENGTH, *TEXT_FEATURES)
        }
        self.now: dict[str, float] = {}

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record; values that complete a baseline are not judged against it."""
        self.now = {}
        for name, warmup in self._warmups.items():
            value = measured(record.mean(role, name))
            if value is not None and warmup.baseline is not None:
                self.now[name] = value
            warmup.see(value)

    @property
    def seen(self) -> set[str]:
        return {name for name, warmup in self._warmups.items() if warmup.seen}

    @property
    def baselines(self) -> dict[str, Baseline]:
        return {k: w.baseline for k, w in self._warmups.items() if w.baseline is not None}

    @property
    def lacks(self) -> int:
        """Records until the length and a text feature have a baseline."""
        texts = [w.lacks for name, w in self._warmups.items() if name != _LENGTH and w.seen]
        return max(self._warmups[_LENGTH].lacks, min(texts, default=0))


@dataclass(frozen=True, slots=True)
class _Shift:
    """How far a role has come toward another one.

    Attributes:
        toward: The other role.
        value: 0 = as at the start, 1 = as the other role at the start.
        text: The same over text features alone; a length alone is ``length_inflation``.
        noise: Mean robust standard deviations by which the features have left the baseline.
        moved: Mean distance gone, in any direction, as a share of the way.
        other_moved: The same of the other role.
        features: Name -> (before, now, the other role's start).
    """

    toward: str
    value: float
    text: float
    noise: float
    moved: float
    other_moved: float
    features: Mapping[str, tuple[float, float, float]]


class SpRoleCapture:
    """Watches the profiles of roles that share a policy.

    Drift needs all of, for ``patience`` records: shift at ``drift_shift``; the text features alone
    at ``watch_shift``; the profile away from its own baseline by ``noise`` standard deviations; and
    the other role having moved less.

    Args:
        workflow: Roles and which of them share a policy.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset({_LENGTH, *TEXT_FEATURES})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._workflow = workflow
        self._settings = config.detectors.sp_role_capture
        self._profiles = {role: _Profile(config.baseline) for role in workflow.role_names}
        self._onsets: dict[str, int | None] = dict.fromkeys(workflow.role_names)
        self._persisted = dict.fromkeys(workflow.role_names, 0)
        self._judged: set[str] = set()

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role whose profile was measured in this record."""
        for role, profile in self._profiles.items():
            profile.see(record, role)
        verdicts = []
        for role in self._profiles:
            verdict = self._verdict(role, record)
            if verdict is not None:
                verdicts.append(verdict)
        return verdicts

    def _verdict(self, role: str, record: StepRecord) -> Verdict | None:
        others = self._workflow.sharing(role)
        if not others:
            return _none(role, "does not apply: isolated, the role has a policy of its own")
        obstacle = self._obstacle(role, others)
        if obstacle is not None:
            return obstacle
        shifts = [one for b in others if (one := self._shift(role, b)) is not None]
        if shifts:
            self._judged.add(role)
            return self._judge(role, record, max(shifts, key=lambda one: one.value))
        need = "one step with texts after the baseline"
        return None if role in self._judged else _none(role, f"needs {need}", need)

    def _obstacle(self, role: str, others: Sequence[str]) -> Verdict | None:
        """Why there can be no verdict yet; None if there can be one."""
        mine = self._profiles[role]
        if _LENGTH not in mine.seen:
            return _none(role, "needs lengths", _LENGTH)
        common = {b: mine.seen & self._profiles[b].seen for b in others}
        if not any(features & set(TEXT_FEATURES) for features in common.values()):
            return _none(role, f"needs {_TEXT_NEED}", _TEXT_NEED)
        lacks = max(self._profiles[name].lacks for name in (role, *others))
        if lacks:
            return _none(role, f"needs {more_steps(lacks)}", more_steps(lacks))
        if not any(set(self._separated(role, b)) & set(TEXT_FEATURES) for b in others):
            need = "a text feature that tells the roles apart at the start"
            return _none(role, f"needs {need}: {role} and {', '.join(others)} write alike", need)
        return None

    def _separated(self, a: str, b: str) -> dict[str, tuple[Baseline, Baseline]]:
        """Features that tell the two roles apart at the start."""
        mine, theirs = self._profiles[a].baselines, self._profiles[b].baselines
        found = {}
        for name in mine.keys() & theirs.keys():
            gap = abs(theirs[name].center - mine[name].center)
            spread = max(mine[name].sigma, theirs[name].sigma)
            if gap >= max(self._settings.separation, 3 * spread):
                found[name] = (mine[name], theirs[name])
        return {name: found[name] for name in (_LENGTH, *TEXT_FEATURES) if name in found}

    def _shift(self, a: str, b: str) -> _Shift | None:
        now = self._profiles[a].now
        separated = {k: both for k, both in self._separated(a, b).items() if k in now}
        texts = [name for name in separated if name != _LENGTH]
        if not texts or _LENGTH not in now:
            return None
        way = {k: _way(now[k], mine, theirs) for k, (mine, theirs) in separated.items()}
        # Without clipping one feature that overshoots its goal would stand in for all others.
        gone = {name: min(max(share, -1.0), 1.0) for name, share in way.items()}
        back = self._profiles[b].now
        returned = [abs(_way(back[k], t, m)) for k, (m, t) in separated.items() if k in back]
        return _Shift(
            toward=b,
            value=_mean(list(gone.values())),
            text=_mean([gone[name] for name in texts]),
            noise=_mean([abs(mine.z(now[k])) for k, (mine, _) in separated.items()]),
            moved=_mean([abs(share) for share in way.values()]),
            other_moved=_mean(returned) if returned else 0.0,
            features={k: (m.typical, now[k], t.typical) for k, (m, t) in separated.items()},
        )

    def _judge(self, role: str, record: StepRecord, shift: _Shift) -> Verdict:
        settings = self._settings
        watched = shift.value >= settings.watch_shift and shift.noise >= settings.noise
        specific = shift.text >= settings.watch_shift and shift.moved > shift.other_moved
        effect = watched and specific and shift.value >= settings.drift_shift
        self._persisted[role] = self._persisted[role] + 1 if effect else 0
        if not watched:
            self._onsets[role] = None
        elif self._onsets[role] is None:
            self._onsets[role] = record.step
        drifting = self._persisted[role] >= max(settings.patience, 1)
        state: State = "drift" if drifting else "watch" if watched else "ok"
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=NAME if drifting else "",
            statistic="shift",
            value=shift.value,
            threshold=settings.drift_shift,
            baseline=0.0,
            onset=self._onsets[role],
            toward=shift.toward,
            reason=_reason(role, shift, state, self._mass(record, shift.toward)),
        )

    def _mass(self, record: StepRecord, role: str) -> float | None:
        """Share of ``role`` in the gradient of its policy, ``<g_role, sum g> / |sum g|^2``."""
        for gram in record.gradients:
            mine = [i for i, label in enumerate(gram.labels) if label.split("/")[0] == role]
            total = math.fsum(x for row in gram.products for x in row)
            if gram.policy == self._workflow.policy_of(role) and mine and total > 0:
                return math.fsum(x for i in mine for x in gram.products[i]) / total
        return None


def _way(value: float, start: Baseline, goal: Baseline) -> float:
    """Share of the way from ``start`` to ``goal`` that ``value`` has gone; 0 at the start."""
    return (start.scale.on(value) - start.center) / (goal.center - start.center)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _reason(role: str, shift: _Shift, state: State, mass: float | None) -> str:
    verb = {"ok": "keeps its own shape", "watch": "leans toward"}.get(state, "writes like")
    whom = f", nearest is {shift.toward}" if state == "ok" else f" {shift.toward}"
    numbers = "; ".join(
        f"{name} {before:.3g} -> {now:.3g}, {shift.toward} began at {goal:.3g}"
        for name, (before, now, goal) in shift.features.items()
    )
    reason = f"{role} {verb}{whom}: shift {shift.value:.2f} ({numbers})"
    if state != "ok":
        reason += f"; {shift.toward} itself moved {shift.other_moved:.2f}"
    if state != "ok" and mass is not None:
        reason += f"; {shift.toward} holds {mass:.2f} of the shared gradient"
    if state == "drift":
        reason += "; a reward for length or for solving would look the same, this is not separated"
    return reason


def _none(role: str, reason: str, need: str = "") -> Verdict:
    return Verdict(NAME, role, "no verdict", reason=reason, needs=(need,) if need else ())
