"""Changes to the training of single roles that a study may want to try; all off by default.

An intervention that is off computes nothing: the run's bits are those of a run without this module.
AdamW divides a gradient by its own running size, so an intervention that only scales the gradient
of a policy (slot weights of a policy with one role) acts through the norm limit and
through changes of the scale over time, not through the scale itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

from torch import Tensor

from reference_trainer.episodes import Span
from roledrift import Workflow

SlotWeight = Literal["one", "inverse", "inverse_sqrt", "sum"]
"""Weight of a row whose role had n slots at its turn: 1, 1/n, 1/sqrt(n), or n, which adds the mean
losses of the slots up instead of averaging them."""


@dataclass(frozen=True, slots=True)
class Interventions:
    """What is changed, for which roles.

    Attributes:
        kl_anchor: Role to beta: ``beta * k3`` is added to the role's loss, k3 being the estimate of
            its KL from the base model (the adapters off).
        agentwise: Roles whose advantage is relative to their own role's rewards on the problem
            (Dr. MAS), whatever ``train.grouping`` says.
        balance_roles: Within a mini-batch every role has the same total weight, however many rows
            (or tokens, if ``train.aggregation`` counts tokens) it has.
        slot_weights: Role to the weight of one of its parallel slots.
        lr_factors: Role to a factor of the learning rate; 1 for roles that are not named. Roles of
            one policy need the same.
    """

    kl_anchor: Mapping[str, float] = field(default_factory=dict)
    agentwise: tuple[str, ...] = ()
    balance_roles: bool = False
    slot_weights: Mapping[str, SlotWeight] = field(default_factory=dict)
    lr_factors: Mapping[str, float] = field(default_factory=dict)


def per_policy(
    values: Mapping[str, float], workflow: Workflow, *, default: float
) -> dict[str, float]:
    """Value of every policy, from values of its roles; check them with :func:`problems` first."""
    return {
        policy: values.get(role, default)
        for role, policy in zip(workflow.role_names, workflow.policies, strict=True)
    }


def problems(settings: Interventions, workflow: Workflow) -> list[str]:
    """What is wrong with ``settings`` for ``workflow``, one sentence each."""
    named = {
        "kl_anchor": settings.kl_anchor,
        "agentwise": settings.agentwise,
        "slot_weights": settings.slot_weights,
        "lr_factors": settings.lr_factors,
    }
    wrong = [
        f"interventions.{name} names {role!r}, which is not a role; there are "
        f"{list(workflow.role_names)}"
        for name, roles in named.items()
        for role in roles
        if role not in workflow.role_names
    ]
    if any(beta < 0 for beta in settings.kl_anchor.values()):
        wrong.append("interventions.kl_anchor must not be negative")
    if any(factor <= 0 for factor in settings.lr_factors.values()):
        wrong.append("interventions.lr_factors must be greater than 0")
    wrong += disagreements("interventions.lr_factors", settings.lr_factors, workflow, default=1.0)
    return wrong


def disagreements(
    name: str, values: Mapping[str, float], workflow: Workflow, *, default: float
) -> list[str]:
    """Roles of one policy that a setting ``name`` gives different values, one sentence each."""
    wrong = []
    for policy in dict.fromkeys(workflow.policies):
        roles = [role for role in workflow.role_names if workflow.policy_of(role) == policy]
        if len({values.get(role, default) for role in roles}) > 1:
            wrong.append(
                f"{name}: roles {roles} share policy {policy!r} and need the same "
                "value; route them to policies of their own to tell them apart"
            )
    return wrong


def anchor(new_BC: Tensor, reference_BC: Tensor) -> Tensor:
    """k3 of every token: ``exp(x) - x - 1`` with ``x = clamp(reference - new, -20, 20)``.

    The result is clamped to [-10, 10]; a token there has no gradient. Schulman 2020, "Approximating
    KL divergence"; the clamps are those of verl.
    """
    x = (reference_BC - new_BC).clamp(-20.0, 20.0)
    return (x.exp() - x - 1.0).clamp(-10.0, 10.0)


def row_weights(
    batch: Sequence[Span], settings: Interventions, *, slots: Mapping[Span, int], tokens: bool
) -> dict[Span, float] | None:
    """Weight of every row of a mini-batch; None if no intervention weighs rows.

    Args:
        batch: The mini-batch.
        settings: What is on.
        slots: Parallel slots of each row, see :func:`slots_of`; 1 for a row that is not there.
        tokens: True if roles are balanced by tokens, False: by rows.
    """
    weighted = any(kind != "one" for kind in settings.slot_weights.values())
    if not weighted and not settings.balance_roles:
        return None
    sizes: Counter[str] = Counter()
    for span in batch:
        sizes[span.role] += len(span.output_ids) if tokens else 1
    total = sizes.total()
    result = {}
    for span in batch:
        kind = settings.slot_weights.get(span.role, "one")
        n = slots.get(span, 1)
        weights = {"one": 1.0, "inverse": 1.0 / n, "inverse_sqrt": 1.0 / sqrt(n), "sum": float(n)}
        weight = weights[kind]
        if settings.balance_roles:
            weight *= total / (len(sizes) * sizes[span.role])
        result[span] = weight
    return result


def slots_of(spans: Sequence[Span]) -> dict[Span, int]:
    """For every span, how many slots its role had in its episode at its turn."""
    places = [(span.problem, span.copy, span.role, span.turn) for span in spans]
    seen = {(place, span.slot) for place, span in zip(places, spans, strict=True)}
    counts = Counter(place for place, _ in seen)
    return {span: counts[place] for span, place in zip(spans, places, strict=True)}
