"""``entropy_collapse``: a role has become sure of itself without having become better.

Every run that learns lowers its entropy, so a fall alone is nothing. It is a collapse if next to
nothing is left of it and nothing was gained: the reward has fallen from its best, or it stands
still while ever more advantage groups have equal rewards and so teach nothing. The opposite, an
entropy that doubles, is told as ``entropy_explosion``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from roledrift.config import Config
from roledrift.detect.abstaining import waiting
from roledrift.detect.baseline import SHARE, Scale, more_steps
from roledrift.detect.payoff import Payoff
from roledrift.detect.signs import Sign, SignOf
from roledrift.records import State, StepRecord, Verdict
from roledrift.workflow import Workflow

NAME = "entropy_collapse"
EXPLOSION = "entropy_explosion"
"""The lesser finding: the entropy has risen."""

ENTROPY = Scale(log=True, sigma_floor=0.15, smallest=1e-4)
"""Nats per token: ratios."""


class EntropyCollapse:
    """Watches the entropy of every role against its own start and against what it buys.

    Args:
        workflow: Roles.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset({"entropy", "zero_variance"})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = settings = config.detectors.entropy_collapse
        self._payoff = Payoff(config.baseline)
        fall = SignOf("entropy", ENTROPY, -math.log(settings.fall), settings.patience)
        rise = SignOf("entropy", ENTROPY, math.log(settings.rise), settings.patience)
        idle = SignOf("zero_variance", SHARE, settings.idle, settings.patience)
        self._falls = {role: Sign(fall, config) for role in workflow.role_names}
        self._rises = {role: Sign(rise, config) for role in workflow.role_names}
        self._idle = {role: Sign(idle, config) for role in workflow.role_names}
        self._judged: set[str] = set()

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role whose entropy was measured in this record."""
        self._payoff.see(record)
        for signs in (self._falls, self._rises, self._idle):
            for role, sign in signs.items():
                sign.see(record, role)
        verdicts = []
        for role, fall in self._falls.items():
            if fall.fresh:
                self._judged.add(role)
                verdicts.append(self._judge(role))
            elif role not in self._judged:
                need = more_steps(max(fall.lacks, 1)) if fall.seen else "entropy"
                verdicts.append(waiting(NAME, role, need))
        return verdicts

    def _judge(self, role: str) -> Verdict:
        fall, rise = self._falls[role], self._rises[role]
        state, finding, why = self._state(role)
        sign = rise if finding == EXPLOSION or (rise.large and state == "watch") else fall
        base, now = fall.baseline, fall.now
        if base is None or now is None:
            return waiting(NAME, role, "entropy")
        threshold = self._risen(base.typical) if sign is rise else self._bottom(base.typical)
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=finding,
            statistic="entropy",
            value=now,
            threshold=threshold,
            baseline=base.typical,
            onset=sign.onset if state != "ok" else None,
            reason=f"{fall} nats per token (x{base.ratio(now):.2f}); {why}",
            needs=("reward",) if state == "watch" and self._payoff.course == "unknown" else (),
        )

    def _state(self, role: str) -> tuple[State, str, str]:
        """State, finding, and the evidence beside the entropy itself."""
        fall, rise, idle = self._falls[role], self._rises[role], self._idle[role]
        base, now, course = fall.baseline, fall.now, self._payoff.course
        if base is None or now is None:
            return "no verdict", "", ""
        if rise.large and now >= self._risen(base.typical):
            risen = rise.drifting
            return "drift" if risen else "watch", EXPLOSION if risen else "", f"{self._payoff}"
        if course == "rose" or not fall.large:
            return "ok", "", f"{self._payoff}"
        low = fall.drifting and now <= self._bottom(base.typical)
        useless = course == "fell" or (course == "level" and idle.drifting)
        why = f"{self._payoff}; {idle}"
        if low and useless:
            return "drift", NAME, why
        short = "" if low else f"; collapse is below {self._bottom(base.typical):.2g}"
        return "watch", "", why + short

    def _bottom(self, typical: float) -> float:
        return min(self._settings.rest * typical, self._settings.ample)

    def _risen(self, typical: float) -> float:
        return max(self._settings.rise * typical, typical + self._settings.floor)
