"""``diversity_collapse``: the slots of a role have become copies of each other, also where wrong.

Slots that are all right agree, and training makes more of them right; agreement is damage only
where it is about mistakes. So what counts is measured among wrong siblings alone: the same wrong
answer, the same words in wrong answers. The number of different openings falls in healthy runs as
well and only lends support.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict, waiting
from roledrift.detect.baseline import SHARE, Scale, measured
from roledrift.detect.payoff import Payoff
from roledrift.detect.signs import Sign, SignOf
from roledrift.detect.votes import Tally, Vote
from roledrift.records import State, StepRecord, Verdict
from roledrift.thresholds import DiversityCollapseConfig
from roledrift.workflow import Workflow

NAME = "diversity_collapse"
UNIFORM = "uniform_siblings"
"""The lesser finding: siblings are alike, but not in the wrong answers they give."""

OPENERS = Scale(log=True, sigma_floor=0.15, smallest=1e-4)
"""Different openings per text: ratios."""


class _Siblings:
    """The signs of one role."""

    def __init__(self, settings: DiversityCollapseConfig, config: Config) -> None:
        patience, pool = settings.patience, settings.pool
        agreement = SignOf("wrong_agreement", SHARE, settings.agreement, patience, pool)
        overlap = SignOf("wrong_jaccard", SHARE, settings.overlap, patience, pool)
        openers = SignOf("openers", OPENERS, -math.log(settings.openers), patience)
        self.agreement = Sign(agreement, config)
        self.overlap = Sign(overlap, config)
        self.openers = Sign(openers, config)

    def see(self, record: StepRecord, role: str) -> None:
        self.agreement.see(record, role)
        self.overlap.see(record, role)
        stat = record.stat(role, "openers")
        kinds = None if stat is None or not stat.n else measured(stat.mean)
        per_text = None if kinds is None or stat is None else kinds / stat.n
        self.openers.take(record.step, per_text)

    @property
    def all(self) -> tuple[Sign, Sign, Sign]:
        return self.agreement, self.overlap, self.openers

    @property
    def tally(self) -> Tally:
        return Tally([Vote(sign, sign.cast) for sign in self.all])


class DiversityCollapse:
    """Watches roles with several slots.

    Args:
        workflow: Roles and slots.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset({"wrong_agreement", "wrong_jaccard", "openers"})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = settings = config.detectors.diversity_collapse
        self._payoff = Payoff(config.baseline)
        self._siblings = {
            role.name: _Siblings(settings, config) if role.slots > 1 else None
            for role in workflow.roles
        }
        self._judged: set[str] = set()

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role for which there is news."""
        self._payoff.see(record)
        verdicts = []
        for role, siblings in self._siblings.items():
            if siblings is None:
                why = "does not apply: the role has one slot, it has no siblings"
                verdicts.append(no_verdict(NAME, role, why))
                continue
            siblings.see(record, role)
            if any(sign.fresh for sign in (siblings.agreement, siblings.overlap)):
                self._judged.add(role)
                verdicts.append(self._judge(role, siblings))
            elif role not in self._judged:
                verdicts.append(_pending(role, siblings))
        return verdicts

    def _judge(self, role: str, siblings: _Siblings) -> Verdict:
        tally, course = siblings.tally, self._payoff.course
        agreement = siblings.agreement
        alike = tally.yes >= 2
        lost = course in ("level", "fell")
        state: State = "ok"
        if alike and lost:
            state = "drift"
        elif agreement.drifting or siblings.overlap.drifting:
            state = "watch"
        finding = "" if state != "drift" else NAME if agreement.drifting else UNIFORM
        leading = agreement if agreement.drifting or agreement.baseline else siblings.overlap
        onsets = [one.onset for one in siblings.all if one.drifting and one.onset is not None]
        base = leading.baseline
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding,
            statistic=leading.of.statistic,
            value=leading.now,
            threshold=None if base is None else base.typical + leading.of.effect,
            baseline=None if base is None else base.typical,
            onset=min(onsets, default=None),
            reason=f"{tally}; {self._payoff}",
        )


def _pending(role: str, siblings: _Siblings) -> Verdict:
    if not (siblings.agreement.seen or siblings.overlap.seen):
        return waiting(NAME, role, "texts and rewards of wrong siblings")
    lacks = siblings.agreement.lacks if siblings.agreement.seen else siblings.overlap.lacks
    pool = siblings.agreement.of.pool
    return waiting(
        NAME, role, f"{max(lacks, 1)} more batches of {pool:.0f} pairs of wrong siblings"
    )
