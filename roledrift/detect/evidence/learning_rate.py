"""The learning rate of each policy: its warm-up, and whether it was raised afterwards."""

from __future__ import annotations

import math

from roledrift.records import StepRecord
from roledrift.workflow import Workflow

_FLAT = 1.001
"""Ratio of neighbouring rates from which on the rate is rising."""


class LearningRates:
    """The learning rate of every role's policy.

    A warm-up is a rise from the first record on; it ends at the first record that does not rise.
    Policy movement is in proportion to the rate, so during the warm-up it is compared per unit of
    rate, and afterwards per unit of the rate at which the warm-up ended: a decay, or a rise above
    that, is no excuse for anything.
    """

    def __init__(self, workflow: Workflow) -> None:
        self._policies = {role: workflow.policy_of(role) for role in workflow.role_names}
        self._totals = {policy: f"lr/{policy}" for policy in self._policies.values()}
        self._rates: dict[str, _Rate] = {}

    def observe(self, record: StepRecord) -> None:
        """Take one record: ``lr/<policy>`` among the totals, else ``lr`` for every policy."""
        totals = record.totals
        shared = totals.get("lr")
        for policy, name in self._totals.items():
            rate = totals.get(name, shared)
            if rate is not None and math.isfinite(rate) and rate > 0:
                self._rates.setdefault(policy, _Rate()).observe(rate)

    def unit(self, role: str) -> float:
        """The rate that the movement of ``role`` is compared per; 1 if none was recorded."""
        rate = self._rates.get(self._policies.get(role, ""))
        return 1.0 if rate is None else rate.reached

    def raised(self, role: str) -> float:
        """The present rate over the highest of the warm-up and before; 1 if not recorded."""
        rate = self._rates.get(self._policies[role])
        return 1.0 if rate is None else rate.now / rate.reached

    def now(self, role: str) -> float:
        """The present rate; 1 if none was recorded."""
        rate = self._rates.get(self._policies.get(role, ""))
        return 1.0 if rate is None else rate.now

    @property
    def known(self) -> bool:
        """True once any rate was recorded."""
        return bool(self._rates)


class _Rate:
    def __init__(self) -> None:
        self.now = 0.0
        self.reached = 0.0
        self._warming = True

    def observe(self, rate: float) -> None:
        if self._warming and (self.now == 0.0 or rate > self.now * _FLAT):
            self.reached = rate
        else:
            self._warming = False
        self.now = rate
