"""``sp_role_capture``: under a shared policy one role has begun to write like another.

A role's profile is what its records say about its texts: the log of its length, the shares of texts
with a certain shape, and the kinds of words (:mod:`roledrift.detect.words`). Between the start
profiles of two roles lies a line; the shift of role ``a`` toward role ``b`` is how far ``a`` has
come along it: 0 at its own start, 1 at the start of ``b``. Each feature is scaled by its distance
between the two roles, so the projection on that line is the mean over features of the share of the
way that each has gone.

Three things look alike and are told apart. *Capture*: the texts, not only their length, go toward
the other role's, which stays. *A role drifting by itself*: its words leave its own start and go
elsewhere (``role_drift``), or its advantage pays it for length (``reward_hacking``). *Collapse*:
the other role moves as far, and that is no capture. The share of the gradient mass that a role
holds is told as a reason but never judged: 90 % for one role is ordinary in healthy shared runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roledrift.config import BaselineConfig, Config
from roledrift.detect.baseline import LENGTH, SHARE, Baseline, Warmup, measured, more_steps
from roledrift.detect.credit import Credit
from roledrift.detect.words import Vocabulary, Way
from roledrift.records import Stat, State, StepRecord, Verdict
from roledrift.workflow import Workflow

NAME = "sp_role_capture"
OWN_DRIFT = "role_drift"
"""The lesser finding: the role left its own way of writing, but not toward another role's."""

REWARD_HACKING = "reward_hacking"
"""The other one: it does what another role does because its advantage pays for length."""

_LENGTH = "length"
_WORDS = "words"
_BY_LENGTH = frozenset({_LENGTH, "terse"})
"""Features that a longer text changes, whatever it says."""

_GROWN = 1.25
TEXT_FEATURES = ("terse", "boxed", "bare_stamp", "code_fence", "verdict_tag", "hedging")
"""Shares of texts with a shape, as recorded per role."""

_TEXT_NEED = "texts (words, boxed, code_fence, ... of both roles)"
_CREDIT_NEED = "length_credit (advantages with their groups)"


class _Profile:
    """One role's features: their baselines and, in the current record, their values."""

    def __init__(self, baseline: BaselineConfig) -> None:
        self._warmups = {
            name: Warmup(baseline, LENGTH if name == _LENGTH else SHARE)
            for name in (_LENGTH, *TEXT_FEATURES)
        }
        self.now: dict[str, float] = {}
        self.baselines: dict[str, Baseline] = {}
        self.words = Vocabulary(baseline)
        self.outputs: Stat | None = None
        """Lengths in the current record: how many outputs, and how long."""
        self.credit = Credit()

    def see(self, record: StepRecord, role: str) -> None:
        """Take one record; values that complete a baseline are not judged against it."""
        self.now = {}
        self.words.see(record, role)
        self.outputs = record.stat(role, _LENGTH)
        self.credit.see(record, role)
        for name, warmup in self._warmups.items():
            value = measured(record.mean(role, name))
            if warmup.baseline is None:
                warmup.see(value)
                if warmup.baseline is not None:
                    self.baselines[name] = warmup.baseline
            elif value is not None:
                self.now[name] = value

    @property
    def seen(self) -> set[str]:
        return {name for name, warmup in self._warmups.items() if warmup.seen}

    @property
    def lacks(self) -> int:
        """Records until the length and a text feature have a baseline."""
        texts = [w.lacks for name, w in self._warmups.items() if name != _LENGTH and w.seen]
        texts += [self.words.lacks] if self.words.seen else []
        return max(self._warmups[_LENGTH].lacks, min(texts, default=0))


@dataclass(frozen=True, slots=True)
class _Shift:
    """How far a role has come toward another one.

    Attributes:
        toward: The other role.
        value: 0 = as at the start, 1 = as the other role at the start.
        text: The same over what does not follow from length; that alone is ``length_inflation``.
        noise: Mean robust standard deviations by which the features have left the baseline.
        moved: Mean distance gone, in any direction, as a share of the way.
        other_moved: The same of the other role.
        features: Name -> (before, now, the other role's start).
        words: The way that its words have gone; None if they tell nothing.
        other_left: Share of that way by which the other role's words have left its start.
    """

    toward: str
    value: float
    text: float
    noise: float
    moved: float
    other_moved: float
    features: Mapping[str, tuple[float, float, float]]
    words: Way | None = None
    other_left: float = 0.0


class SpRoleCapture:
    """Watches the profiles of roles that share a policy.

    Capture needs all of, for ``patience`` records: shift at ``drift_shift``; what does not follow
    from length alone at ``watch_shift``; where words are known, those too, and their way at least
    ``direct`` straight toward the other role; the profile away from its own baseline by ``noise``
    standard deviations; and the other role having moved less. It is ``reward_hacking`` instead if
    the role's texts have grown and its advantage pays for length: a correlation of ``paid`` within
    advantage groups, at the lower 95 % bound. A role whose words have gone at least ``drift_shift``
    of the way to the nearest role, but elsewhere, has drifted by itself.

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
        self._hacked: dict[str, int | None] = {}
        self._persisted = dict.fromkeys(workflow.role_names, 0)
        self._own = dict.fromkeys(workflow.role_names, 0)
        self._judged: set[str] = set()
        self._apart: dict[tuple[str, str, int, int], dict[str, tuple[Baseline, Baseline]]] = {}
        self._others = {role: workflow.sharing(role) for role in workflow.role_names}
        why = "does not apply: isolated, the role has a policy of its own"
        self._alone = {role: _none(role, why) for role, its in self._others.items() if not its}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role whose profile was measured in this record."""
        for role, profile in self._profiles.items():
            if role not in self._alone:
                profile.see(record, role)
        verdicts = []
        for role in self._profiles:
            verdict = self._verdict(role, record)
            if verdict is not None:
                verdicts.append(verdict)
        return verdicts

    def _verdict(self, role: str, record: StepRecord) -> Verdict | None:
        if role in self._alone:
            return self._alone[role]
        others = self._others[role]
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
        worded = any(mine.words.seen and self._profiles[b].words.seen for b in others)
        if not worded and not any(its & set(TEXT_FEATURES) for its in common.values()):
            return _none(role, f"needs {_TEXT_NEED}", _TEXT_NEED)
        lacks = max(self._profiles[name].lacks for name in (role, *others))
        if lacks:
            return _none(role, f"needs {more_steps(lacks)}", more_steps(lacks))
        if not any(
            mine.words.tells_apart(self._profiles[b].words)
            or set(self._separated(role, b)) & set(TEXT_FEATURES)
            for b in others
        ):
            need = "a text feature that tells the roles apart at the start"
            return _none(role, f"needs {need}: {role} and {', '.join(others)} write alike", need)
        return None

    def _separated(self, a: str, b: str) -> dict[str, tuple[Baseline, Baseline]]:
        """Features that tell the two roles apart at the start."""
        mine, theirs = self._profiles[a].baselines, self._profiles[b].baselines
        # A baseline that is there stays as it is: only a further one can change what is found.
        key = (a, b, len(mine), len(theirs))
        if key not in self._apart:
            self._apart[key] = {
                name: (mine[name], theirs[name])
                for name in (_LENGTH, *TEXT_FEATURES)
                if name in mine and name in theirs and self._differ(mine[name], theirs[name])
            }
        return self._apart[key]

    def _differ(self, mine: Baseline, theirs: Baseline) -> bool:
        spread = max(mine.sigma, theirs.sigma)
        return abs(theirs.center - mine.center) >= max(self._settings.separation, 3 * spread)

    def _shift(self, a: str, b: str) -> _Shift | None:
        mine_all, its_all = self._profiles[a], self._profiles[b]
        now, words = mine_all.now, mine_all.words.way(its_all.words)
        separated = {k: both for k, both in self._separated(a, b).items() if k in now}
        if not (words or separated.keys() - {_LENGTH}) or _LENGTH not in now:
            return None
        way = {k: _way(now[k], mine, theirs) for k, (mine, theirs) in separated.items()}
        noise = [abs(mine.z(now[k])) for k, (mine, _) in separated.items()]
        if words is not None:
            way[_WORDS] = words.share
            noise.append(abs(words.z))
        # Without clipping one feature that overshoots its goal would stand in for all others.
        gone = {name: min(max(share, -1.0), 1.0) for name, share in way.items()}
        texts = [share for name, share in gone.items() if name not in _BY_LENGTH]
        back, returned = its_all.now, its_all.words.way(mine_all.words)
        other = [abs(_way(back[k], t, m)) for k, (m, t) in separated.items() if k in back]
        other += [] if returned is None else [abs(returned.share)]
        return _Shift(
            toward=b,
            value=_mean(list(gone.values())),
            text=_mean(texts) if texts else 0.0,
            noise=_mean(noise),
            moved=_mean([abs(share) for share in way.values()]),
            other_moved=_mean(other) if other else 0.0,
            features={k: (m.typical, now[k], t.typical) for k, (m, t) in separated.items()},
            words=words,
            other_left=0.0 if returned is None else returned.gone,
        )

    def _judge(self, role: str, record: StepRecord, shift: _Shift) -> Verdict:
        settings = self._settings
        leaning = shift.value >= settings.watch_shift and shift.noise >= settings.noise
        captured = leaning and shift.value >= settings.drift_shift and self._specific(shift)
        alone = not captured and self._by_itself(shift)
        self._persisted[role] = self._persisted[role] + 1 if captured else 0
        self._own[role] = self._own[role] + 1 if alone else 0
        watched = leaning or alone
        if not watched:
            self._onsets[role] = None
        elif self._onsets[role] is None:
            self._onsets[role] = record.step
        patience = max(settings.patience, 1)
        finding, needs = "", tuple[str, ...]()
        if self._persisted[role] >= patience:
            finding, needs = self._named(role, shift)
        elif self._own[role] >= patience:
            finding = OWN_DRIFT
        state: State = "drift" if finding else "watch" if watched else "ok"
        reason = _reason(role, shift, state, own=alone)
        if state != "ok" and not alone:
            reason += self._why(record, role, shift.toward)
        if finding in (NAME, REWARD_HACKING):
            reason += f"; {_surface(shift)}" + self._told_credit(role)
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding,
            statistic="shift" if not alone else "words",
            value=shift.value if not alone or shift.words is None else shift.words.gone,
            threshold=settings.drift_shift,
            baseline=0.0,
            onset=self._onsets[role],
            toward="" if alone else shift.toward,
            reason=reason,
            needs=needs,
        )

    def _specific(self, shift: _Shift) -> bool:
        """Whether it is texts that go toward that role, and that role that stays."""
        settings, words = self._settings, shift.words
        if shift.text < settings.watch_shift or shift.moved <= shift.other_moved:
            return False
        return words is None or (
            words.share >= settings.watch_shift and words.direct >= settings.direct
        )

    def _by_itself(self, shift: _Shift) -> bool:
        """Whether the role's words have left its start for elsewhere, while the others' stay."""
        settings, words = self._settings, shift.words
        if words is None or words.left < settings.noise:
            return False
        elsewhere = words.share < settings.watch_shift or words.direct < settings.direct
        return elsewhere and words.gone >= max(settings.drift_shift, 2 * shift.other_left)

    def _named(self, role: str, shift: _Shift) -> tuple[str, tuple[str, ...]]:
        """The finding for a role that writes like another, and what is missing to be surer."""
        paid, length = self._paid(role), self._profiles[role].baselines[_LENGTH]
        needs = [] if shift.words is not None else ["words (texts of both roles)"]
        if paid is None:
            return NAME, (*needs, _CREDIT_NEED)
        grown = length.ratio(self._profiles[role].now[_LENGTH]) >= _GROWN
        # Once all texts are long nothing shows any more what was paid for at the onset.
        earlier = self._hacked.get(role) == self._onsets[role]
        hacked = grown and (earlier or paid[1] >= self._settings.paid)
        if hacked:
            self._hacked[role] = self._onsets[role]
        return (REWARD_HACKING if hacked else NAME), tuple(needs)

    def _paid(self, role: str) -> tuple[float, float] | None:
        onset = self._onsets[role]
        return None if onset is None else self._profiles[role].credit.paid(onset)

    def _told_credit(self, role: str) -> str:
        paid = self._paid(role)
        if paid is None:
            return (
                "; a reward for length would look the same: whether its advantage pays for length "
                "was not measured"
            )
        return (
            f"; its advantage and its length correlate {paid[0]:+.2f} (95 % above {paid[1]:+.2f})"
        )

    def _why(self, record: StepRecord, role: str, toward: str) -> str:
        """The two sources that the paper names, in numbers: slots, and tokens; and the gradient."""
        mine, its = self._profiles[role].outputs, self._profiles[toward].outputs
        told = ""
        if mine is not None and its is not None and mine.n and mine.mean:
            told += (
                f"; {toward} has {its.n / mine.n:.2g} outputs per output of {role}, "
                f"{its.mean * its.n / (mine.mean * mine.n):.2g} times its tokens"
            )
        mass = self._mass(record, toward)
        return told if mass is None else f"{told}; {toward} holds {mass:.2f} of the shared gradient"

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


def _reason(role: str, shift: _Shift, state: State, *, own: bool) -> str:
    numbers = "; ".join(
        f"{name} {before:.3g} -> {now:.3g}, {shift.toward} began at {goal:.3g}"
        for name, (before, now, goal) in shift.features.items()
    )
    words = ""
    if shift.words is not None:
        words = (
            f"words went {shift.words.share:.2f} of the way to {shift.toward}'s, "
            f"{shift.words.gone:.2f} from its own"
        )
    told = "; ".join(part for part in (words, numbers) if part)
    if own:
        return f"{role} writes unlike its start, but not like {shift.toward}: {told}"
    verb = {"ok": "keeps its own shape", "watch": "leans toward"}.get(state, "writes like")
    whom = f", nearest is {shift.toward}" if state == "ok" else f" {shift.toward}"
    reason = f"{role} {verb}{whom}: shift {shift.value:.2f} ({told})"
    if state != "ok":
        reason += f"; {shift.toward} itself moved {shift.other_moved:.2f}"
    return reason


def _surface(shift: _Shift) -> str:
    """What the capture looks like, by what changed most."""
    change = {name: now - before for name, (before, now, _) in shift.features.items()}
    if change.get("code_fence", 0.0) >= 0.25:
        return "programs in its slot"
    if min(change.get("bare_stamp", 0.0), change.get("verdict_tag", 0.0)) <= -0.25:
        return "its stamp is gone, it solves again"
    if change.get("terse", 0.0) <= -0.25:
        return "its short answer is gone"
    return f"its texts take the shape of {shift.toward}'s"


def _none(role: str, reason: str, need: str = "") -> Verdict:
    return Verdict(NAME, role, "no verdict", reason=reason, needs=(need,) if need else ())
