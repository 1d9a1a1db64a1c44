"""``echo_trap``: a policy repeats what once paid until nothing is left to learn from.

RAGEN (arXiv 2504.20073) describes it in multi-turn training: within some steps of each other the
rewards of a group become alike, the entropy falls, and gradient norms spike; the collapse cannot be
undone. The first two are what success looks like as well, so they count only while nothing is
gained. All three are needed for the name; two with a reward that has fallen are ``echo_suspected``.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

from roledrift.config import Config
from roledrift.detect.abstaining import waiting
from roledrift.detect.baseline import MOVEMENT, SHARE, Warmup, measured, more_steps
from roledrift.detect.entropy_collapse import ENTROPY
from roledrift.detect.payoff import Payoff
from roledrift.detect.signs import Sign, SignOf
from roledrift.detect.votes import Tally, Vote
from roledrift.records import State, StepRecord, Verdict
from roledrift.workflow import Workflow

NAME = "echo_trap"
SUSPECTED = "echo_suspected"
"""The lesser finding: two of the three signs, and the reward has fallen."""

_EVIDENCE = 2.5
"""Robust standard deviations that a gradient norm must exceed its baseline by to be a spike."""


class _Spikes:
    """Gradient norms of one role's policy that stand out, for as long as they count."""

    def __init__(self, config: Config, policy: str) -> None:
        settings = config.detectors.echo_trap
        self._policy = policy
        self._ratio = settings.spike
        self._warmup = Warmup(config.baseline, MOVEMENT)
        self._recent: deque[tuple[int, float]] = deque(maxlen=settings.window)

    def see(self, record: StepRecord, role: str) -> None:
        norm = measured(gradient_norm(record, self._policy, role))
        base = self._warmup.baseline
        self._warmup.see(norm)
        if base is None or norm is None:
            return
        spike = norm >= self._ratio * base.typical and base.z(norm) >= _EVIDENCE
        self._recent.append((record.step, norm / base.typical if spike else 0.0))

    @property
    def vote(self) -> Vote:
        """A spike within the window; None without gradient norms."""
        if not self._recent:
            return Vote("gradient norm", None)
        ratio, step = max((ratio, step) for step, ratio in self._recent)
        told = f"gradient norm x{ratio:.1f} at step {step}" if ratio > 0 else "gradient norm"
        return Vote(told, ratio > 0)


class EchoTrap:
    """Watches rewards within groups, entropy and gradient norms of every role.

    Args:
        workflow: Roles and policies.
        config: Its section and the baseline.
    """

    name = NAME
    reads = frozenset({"reward_spread", "zero_variance", "entropy"})

    def __init__(self, workflow: Workflow, config: Config) -> None:
        settings = config.detectors.echo_trap
        self._payoff = Payoff(config.baseline)
        roles = workflow.role_names
        spread = SignOf("reward_spread", SHARE, -settings.spread, settings.patience)
        equal = SignOf("zero_variance", SHARE, settings.spread, settings.patience)
        entropy = SignOf("entropy", ENTROPY, -math.log(settings.fall), settings.patience)
        self._spreads = {role: Sign(spread, config) for role in roles}
        self._equals = {role: Sign(equal, config) for role in roles}
        self._entropies = {role: Sign(entropy, config) for role in roles}
        self._spikes = {role: _Spikes(config, workflow.policy_of(role)) for role in roles}
        self._judged: set[str] = set()

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role whose entropy and rewards were measured in this record."""
        self._payoff.see(record)
        verdicts = []
        for role, entropy in self._entropies.items():
            for signs in (self._spreads, self._equals, self._entropies):
                signs[role].see(record, role)
            self._spikes[role].see(record, role)
            alike = self._alike(role)
            if alike.fresh and entropy.fresh:
                self._judged.add(role)
                verdicts.append(self._judge(role, alike, entropy))
            elif role not in self._judged:
                verdicts.append(_pending(role, alike, entropy))
        return verdicts

    def _alike(self, role: str) -> Sign:
        """The sign of rewards within groups: their spread, or where unknown equal groups."""
        spread = self._spreads[role]
        return spread if spread.seen else self._equals[role]

    def _judge(self, role: str, alike: Sign, entropy: Sign) -> Verdict:
        votes = [Vote(sign, sign.drifting) for sign in (alike, entropy)]
        tally = Tally([*votes, self._spikes[role].vote])
        course = self._payoff.course
        trapped = tally.yes == 3 and course in ("level", "fell")
        suspected = tally.yes >= 2 and course == "fell"
        state: State = "ok"
        if trapped or suspected:
            state = "drift"
        elif tally.yes >= 2 and course == "level":
            state = "watch"
        onsets = [s.onset for s in (alike, entropy) if s.drifting and s.onset is not None]
        return Verdict(
            detector=NAME,
            role=role,
            state=state,
            finding=NAME if trapped else SUSPECTED if suspected else "",
            statistic="signs",
            value=float(tally.yes),
            threshold=3.0,
            baseline=0.0,
            onset=max(onsets, default=None) if state != "ok" else None,
            reason=f"{tally}; {self._payoff}",
            needs=tally.missing,
        )


def gradient_norm(record: StepRecord, policy: str, role: str) -> float | None:
    """The norm of a policy's gradient, from whoever has measured it.

    Args:
        record: One step.
        policy: The role's policy.
        role: The role, for logs with norms per role.
    """
    for gram in record.gradients:
        if gram.policy == policy:
            return math.sqrt(max(math.fsum(x for row in gram.products for x in row), 0.0))
    named = record.totals.get(f"grad_norm/{policy}", record.mean(role, "grad_norm"))
    return record.totals.get("grad_norm") if named is None else named


def _pending(role: str, alike: Sign, entropy: Sign) -> Verdict:
    missing = [
        need
        for sign, need in ((alike, "rewards and advantage groups"), (entropy, "entropy"))
        if not sign.seen
    ]
    lacks = max(alike.lacks, entropy.lacks, 1)
    return waiting(NAME, role, *(missing or [more_steps(lacks)]))
