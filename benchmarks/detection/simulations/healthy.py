"""Healthy runs under noise of many kinds: how often is anything told?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.detection.simulations.noise import Noise
from benchmarks.detection.simulations.plans import STAMP, VERDICT, RolePlan, RunPlan, course
from benchmarks.detection.simulations.trials import Trial
from roledrift import EVAL_OPT, ORCH_WORKERS, SINGLE, VOTING, Role, Workflow


@dataclass(frozen=True)
class Condition:
    """One kind of healthy run.

    Attributes:
        name: For tables.
        noise: How things scatter.
        steps: Iterations.
        workflow: Name in :data:`WORKFLOWS`.
        times: Runs at scale 1.
        small: Whether batches are small (32 episodes of 4 problems, as recorded) or large (512 of
            64).
    """

    name: str
    noise: Noise = field(default_factory=Noise)
    steps: int = 100
    workflow: str = "voting-ip"
    times: int = 40
    small: bool = True


def _many(roles: int) -> Workflow:
    """Solvers of isolated policies, the last role selects."""
    solvers = tuple(Role(f"solver{letter}", slots=2) for letter in "ABCDEFGH"[: roles - 1])
    workflow = Workflow.of(
        Workflow(
            f"{roles} roles",
            (*solvers, Role("aggregator", duty="select", terse=True)),
            ("shared",) * roles,
        )
    )
    return workflow.routed("isolated")


WORKFLOWS = {
    "voting-ip": VOTING.routed("isolated"),
    "voting-sp": VOTING,
    "eval-opt-sp": EVAL_OPT,
    "orch-ip": ORCH_WORKERS.routed("isolated"),
    "single": SINGLE,
    "4 roles": _many(4),
    "8 roles": _many(8),
}

PLAIN = tuple(
    Condition(f"{steps} steps, autocorrelation {rho}", Noise(rho), steps, times=times)
    for steps, times in ((34, 60), (100, 60), (500, 16), (2000, 4))
    for rho in (0.0, 0.5, 0.9)
)
HARDER = (
    Condition("heavy tails (t, 3 degrees of freedom)", Noise(0.5, "t3")),
    Condition("outliers of 4 to 8 sd in 2 % of the records", Noise(0.5, "outliers")),
    Condition("noise doubles half way", Noise(0.5, "normal", "doubles")),
    Condition("noise wanders by 40 %", Noise(0.5, "normal", "wanders")),
    Condition("lengths at the 90th percentile of noise (.14)", Noise(0.5, length=0.14)),
    Condition("movement at the 90th percentile of noise (1.56)", Noise(0.5, movement=1.56)),
    Condition("all three at .9", Noise(0.9, length=0.14, movement=1.56, entropy=0.2)),
    Condition("large batches: 512 episodes of 64 problems", Noise(0.5), small=False),
    Condition("voting, shared", Noise(0.5), workflow="voting-sp"),
    Condition("evaluator-optimizer, shared", Noise(0.5), workflow="eval-opt-sp"),
    Condition("orchestrator, workers", Noise(0.5), workflow="orch-ip"),
    Condition("one role", Noise(0.5), workflow="single"),
    Condition("4 roles", Noise(0.5), workflow="4 roles", times=24),
    Condition("8 roles", Noise(0.5), workflow="8 roles", times=16),
    Condition("8 roles, autocorrelation 0", Noise(0.0), workflow="8 roles", times=16),
    Condition("8 roles, 500 steps", Noise(0.5), 500, "8 roles", times=4),
)
CONDITIONS = (*PLAIN, *HARDER)


def healthy_plan(condition: Condition) -> RunPlan:
    """A run of that kind: accuracy rises and levels off, nothing else changes."""
    steps = condition.steps
    workflow = WORKFLOWS[condition.workflow]
    roles = {}
    for role in workflow.roles:
        if role.duty == "select":
            roles[role.name] = RolePlan(5.0, 2e-4, STAMP)
        elif role.duty == "judge":
            roles[role.name] = RolePlan(6.0, 2e-4, VERDICT)
        else:
            roles[role.name] = RolePlan(updates=2 if role.slots > 1 else 1)
    rises = course(steps, {1: 0.45, steps // 2: 0.75, steps: 0.78})
    sizes = (32, 4) if condition.small else (512, 64)
    return RunPlan(
        workflow, roles, steps, rises, *sizes, condition.noise, lr=course(steps, {1: 1e-3})
    )


def trials(scale: float) -> Iterator[Trial]:
    """Every condition, ``scale`` times its number of runs."""
    for condition in CONDITIONS:
        for seed in range(max(round(condition.times * scale), 1)):
            yield Trial(condition.name, healthy_plan(condition), seed)
