"""``lazy_role``: what a role says has stopped mattering.

Three kinds, by what the role is there for. A judge that always gives the same verdict, though the
answers are not always right (``rubber_stamp``). A selecting role that gives one and the same answer
to every problem, though it did not at the start (``constant_output``). A synthesizing role whose
text is what it was given, though it was not at the start (``copies_input``). Each is told under its
own name; it is a lazy role when the workflow has lost accuracy meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.baseline import SHARE, measured, more_steps
from roledrift.detect.payoff import Payoff, outcome
from roledrift.detect.signs import Sign, SignOf
from roledrift.records import State, StepRecord, Verdict
from roledrift.workflow import Duty, Workflow

NAME = "lazy_role"
RUBBER_STAMP = "rubber_stamp"
CONSTANT_OUTPUT = "constant_output"
COPIES_INPUT = "copies_input"

_WHY_NOT = "does not apply: only to roles that judge, select or synthesize"


@dataclass(frozen=True, slots=True)
class _Seen:
    """One role in one record.

    Attributes:
        value: The statistic.
        threshold: Where lazy begins.
        lazy: True if the role is.
        told: The numbers, in words.
        baseline: What the value is compared with.
    """

    value: float
    threshold: float
    lazy: bool
    told: str
    baseline: float | None = None


class _Kind(Protocol):
    """One way to be lazy."""

    finding: str
    statistic: str

    def see(self, record: StepRecord, role: str) -> _Seen | None:
        """What a record shows; None if there is nothing new to judge."""
        ...

    @property
    def need(self) -> str:
        """What is missing before there is anything to judge."""
        ...


class _Judge:
    """The same verdict always; no baseline: it is compared with how often it is so."""

    finding, statistic = RUBBER_STAMP, "verdict_correct"

    def __init__(self, config: Config) -> None:
        self._settings = config.detectors.lazy_role
        self._n = self._correct = 0.0
        self._truth: list[float] = []
        self._seen = False

    @property
    def need(self) -> str:
        """What is missing."""
        if not self._seen:
            return "verdicts (texts of the judging role)"
        return "more verdicts" if self._truth else "accuracy in totals, to hold the verdicts to"

    def see(self, record: StepRecord, role: str) -> _Seen | None:
        """Verdicts are pooled until there are enough to tell a rate from luck."""
        stat, (source, right) = record.stat(role, self.statistic), outcome(record)
        if stat is None or measured(stat.mean) is None:
            return None
        self._seen = True
        if source != "accuracy" or right is None:
            return None
        self._n += stat.n
        self._correct += stat.n * stat.mean
        self._truth.append(right)
        if self._n < self._settings.pool:
            return None
        said, truth, n = self._correct / self._n, fmean(self._truth), self._n
        self._n = self._correct = 0.0
        self._truth = [truth]
        share = max(said, 1 - said)
        luck = 3 * math.sqrt(max(truth * (1 - truth), 1 / n) / n)
        lazy = share >= self._settings.one_verdict and abs(said - truth) >= max(0.1, luck)
        word = "Correct" if said >= 0.5 else "Incorrect"
        told = f"{share:.3g} of {n:.0f} verdicts are {word}, while {truth:.2g} of the answers are"
        return _Seen(share, self._settings.one_verdict, lazy, f"{told} correct")


class _Selector:
    """One answer to every problem, where there were several at the start."""

    finding, statistic = CONSTANT_OUTPUT, "openers"

    def __init__(self, config: Config) -> None:
        self._least = config.detectors.lazy_role.pool
        self._sign = Sign(SignOf(self.statistic, SHARE, -0.5), config)

    @property
    def need(self) -> str:
        """What is missing."""
        if not self._sign.seen:
            return "texts of the selecting role"
        return more_steps(max(self._sign.lacks, 1))

    def see(self, record: StepRecord, role: str) -> _Seen | None:
        """The number of different openings; few answers say nothing."""
        stat = record.stat(role, self.statistic)
        few = stat is None or stat.n < self._least
        self._sign.take(record.step, None if few or stat is None else stat.mean)
        base, value = self._sign.baseline, self._sign.now
        if stat is None or base is None or value is None or not self._sign.fresh:
            return None
        told = f"{value:.0f} different openings in {stat.n:.0f} answers, {base.typical:.3g} before"
        return _Seen(value, 1.0, value <= 1 and base.typical >= 2, told, base.typical)


class _Synthesizer:
    """Nothing but what it was given, where it was not so at the start."""

    finding, statistic = COPIES_INPUT, "copied"

    def __init__(self, config: Config) -> None:
        settings = config.detectors.lazy_role
        self._copied = settings.copied
        rise = SignOf(self.statistic, SHARE, settings.copied_rise, settings.patience)
        self._sign = Sign(rise, config)

    @property
    def need(self) -> str:
        """What is missing."""
        if not self._sign.seen:
            return "texts and episodes of the synthesizing role and of those that solve"
        return more_steps(max(self._sign.lacks, 1))

    def see(self, record: StepRecord, role: str) -> _Seen | None:
        """The share of its words that its input has."""
        self._sign.see(record, role)
        base, value = self._sign.baseline, self._sign.now
        if base is None or value is None or not self._sign.fresh:
            return None
        lazy = value >= self._copied and self._sign.drifting
        return _Seen(value, self._copied, lazy, f"{self._sign} is its input's", base.typical)


_KINDS: Mapping[Duty, type[_Judge] | type[_Selector] | type[_Synthesizer]] = {
    "judge": _Judge,
    "select": _Selector,
    "synthesize": _Synthesizer,
}


class LazyRole:
    """Watches the roles that work on what others have written.

    Args:
        workflow: Roles and their duties.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset({"verdict_correct", "openers", "copied"})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._patience = max(config.detectors.lazy_role.patience, 1)
        self._payoff = Payoff(config.baseline)
        self._kinds: dict[str, _Kind | None] = {
            role.name: _KINDS[role.duty](config) if role.duty in _KINDS else None
            for role in workflow.roles
        }
        self._persisted = dict.fromkeys(workflow.role_names, 0)
        self._onsets: dict[str, int | None] = dict.fromkeys(workflow.role_names)
        self._judged: set[str] = set()

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role for which there is news."""
        self._payoff.see(record)
        verdicts = []
        for role, kind in self._kinds.items():
            if kind is None:
                verdicts.append(no_verdict(NAME, role, _WHY_NOT))
                continue
            seen = kind.see(record, role)
            if seen is not None:
                self._judged.add(role)
                verdicts.append(self._judge(role, record.step, kind, seen))
            elif role not in self._judged:
                verdicts.append(waiting(NAME, role, kind.need))
        return verdicts

    def _judge(self, role: str, step: int, kind: _Kind, seen: _Seen) -> Verdict:
        self._persisted[role] = self._persisted[role] + 1 if seen.lazy else 0
        if not seen.lazy:
            self._onsets[role] = None
        elif self._onsets[role] is None:
            self._onsets[role] = step
        course = self._payoff.course
        # One answer to everything is what is left of a choice among answers that are all right; a
        # verdict was held to the truth already.
        pays = course in ("rose", "unknown") and kind.finding != RUBBER_STAMP
        drifting = self._persisted[role] >= self._patience and not pays
        state: State = "drift" if drifting else "watch" if seen.lazy else "ok"
        finding = (NAME if course == "fell" else kind.finding) if drifting else ""
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding,
            statistic=kind.statistic,
            value=seen.value,
            threshold=seen.threshold,
            baseline=seen.baseline,
            onset=self._onsets[role],
            reason=f"{seen.told}; {self._payoff}",
        )
