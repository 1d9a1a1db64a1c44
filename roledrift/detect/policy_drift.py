"""``policy_drift``: policies move away from where they were, whatever the cause.

Every role is watched, whether it has slots or not and whoever shares its policy: a hot learning
rate, noisy rewards or a wrong loss move a policy too, and nothing else in the panel would see it.
One role that moves is ``role_drift``; all of them at once are ``policy_drift`` of the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.config import Config
from roledrift.detect.baseline import more_steps
from roledrift.detect.gradient_amplification import ROLE_DRIFT, refusal
from roledrift.detect.movement import UPDATE_NEED, Moved, Movement
from roledrift.records import State, StepRecord, Verdict
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

NAME = "policy_drift"


class PolicyDrift:
    """Watches the movement of every role, and of all together.

    Roles that ``gradient_amplification`` watches are left to it, if it is enabled.

    Args:
        workflow: Roles and policies.
        config: Its section and the baseline.
    """

    name = NAME

    def __init__(self, workflow: Workflow, config: Config) -> None:
        settings = config.detectors.policy_drift
        self._workflow = workflow
        self._moves = {
            role: Movement(
                role, settings, baseline=config.baseline, forget_after=config.close_after
            )
            for role in workflow.role_names
        }
        elsewhere = config.detectors.gradient_amplification.enabled
        self._left = frozenset(
            role for role in workflow.role_names if elsewhere and not refusal(workflow, role)
        )

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role that was measured in this record, and one for several together."""
        for movement in self._moves.values():
            movement.see(record)
        together = self._together(record)
        verdicts = [] if together is None else [together]
        everyone = together is not None and together.state == "drift"
        for role, movement in self._moves.items():
            verdict = self._verdict(movement, record, everyone)
            if verdict is not None and role not in self._left:
                verdicts.append(verdict)
        return verdicts

    def _verdict(self, mine: Movement, record: StepRecord, everyone: bool) -> Verdict | None:
        source = mine.source
        if not source:
            return _none(mine.role, f"needs {UPDATE_NEED}", UPDATE_NEED)
        if mine.baseline(source) is None:
            need = more_steps(mine.lacks(source))
            return _none(mine.role, f"needs {need}", need)
        now = mine.now
        if record.mean(mine.role, source) is None or now is None:
            return None
        drifting = now.drifting and not everyone
        state: State = "drift" if drifting else "watch" if now.moving else "ok"
        reason = mine.told(now)
        if drifting:
            reason += mine.told_ppl() + self._others(mine.role, source)
        elif state == "watch":
            reason += "; all roles do" if everyone else f"; {mine.short_of_drift(now)}"
        return Verdict(
            detector=NAME,
            role=mine.role,
            state=state,
            finding=ROLE_DRIFT if drifting else "",
            statistic=source,
            value=now.own,
            threshold=now.threshold,
            baseline=now.baseline.typical,
            onset=now.onset,
            reason=reason,
            evidence=now.evidence,
            chance=now.chance,
        )

    def _others(self, role: str, source: str) -> str:
        its = [
            f"{name} {value:.2g}"
            for name, one in self._moves.items()
            if name != role and (value := one.recent(source)) is not None
        ]
        sharing = self._workflow.sharing(role)
        shared = f"; the policy is shared with {', '.join(sharing)}" if sharing else ""
        return (f"; {', '.join(its)}" if its else "") + shared

    def _together(self, record: StepRecord) -> Verdict | None:
        """All roles at once; None in a record in which not all of them were measured."""
        if len(self._moves) < 2:
            return None
        judged = {role: one.now for role, one in self._moves.items()}
        now = {role: one for role, one in judged.items() if one is not None}
        if len(now) < len(judged):
            absent = ", ".join(role for role in judged if role not in now)
            need = f"the movement of {absent} and its baseline"
            return _none(EVERYONE, f"needs {need}", need)
        if any(record.mean(role, one.source) is None for role, one in now.items()):
            return None
        least = min(now, key=lambda role: now[role].growth)
        drifting = all(one.drifting for one in now.values())
        moving = all(one.moving for one in now.values())
        state: State = "drift" if drifting else "watch" if moving else "ok"
        onsets = [one.onset for one in now.values() if one.onset is not None]
        return Verdict(
            detector=NAME,
            role=EVERYONE,
            state=state,
            finding=NAME if drifting else "",
            statistic=now[least].source,
            value=now[least].growth,
            threshold=now[least].threshold / now[least].baseline.typical,
            baseline=1.0,
            onset=min(onsets, default=None) if moving else None,
            reason=_told(now, moving),
        )


def _told(now: dict[str, Moved], moving: bool) -> str:
    grown = ", ".join(
        f"{role} x{one.growth:.1f} ({one.source} {one.baseline.typical:.2g} -> {one.own:.2g})"
        for role, one in now.items()
    )
    return f"{'all roles move' if moving else 'not all roles move'}: {grown}"


def _none(role: str, reason: str, need: str = "") -> Verdict:
    return Verdict(NAME, role, "no verdict", reason=reason, needs=(need,) if need else ())
