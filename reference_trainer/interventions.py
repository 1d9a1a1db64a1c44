"""Changes to the training of single roles that a study may want to try; all off by default.

An intervention that is off computes nothing: the run's bits are those of a run without this module.
AdamW divides a gradient by its own running size, so an intervention that only scales the gradient
of a policy (coherence, slot weights of a policy with one role) acts through the norm limit and
through changes of the scale over time, not through the scale itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Literal

import torch
from torch import Tensor
from torch.nn import Parameter

from reference_trainer.episodes import Span
from roledrift import Workflow

SlotWeight = Literal["one", "inverse", "inverse_sqrt", "sum"]
"""Weight of a row whose role had n slots at its turn: 1, 1/n, 1/sqrt(n), or n, which adds the mean
losses of the slots up instead of averaging them."""


@dataclass(frozen=True, slots=True)
class CoherenceSettings:
    """Steps become smaller while a policy's gradient keeps its direction.

    Attributes:
        weights: Role to lambda in [0, 1]; 0 for roles that are not named. Roles of one policy need
            the same: the gradient is the policy's. At 1 the first gradient is scaled to nothing,
            and so is every later one along it.
        window: The memory is a moving average over about this many optimizer steps.
        epsilon: Added to the product of the norms.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    window: int = 128
    epsilon: float = 1e-8


@dataclass(frozen=True, slots=True)
class Interventions:
    """What is changed, for which roles.

    Attributes:
        kl_anchor: Role to beta: ``beta * k3`` is added to the role's loss, k3 being the estimate of
            its KL from the base model (the adapters off).
        coherence: Smaller steps along a direction that stays the same.
        agentwise: Roles whose advantage is relative to their own role's rewards on the problem
            (Dr. MAS), whatever ``train.grouping`` says.
        balance_roles: Within a mini-batch every role has the same total weight, however many rows
            (or tokens, if ``train.aggregation`` counts tokens) it has.
        slot_weights: Role to the weight of one of its parallel slots.
        lr_factors: Role to a factor of the learning rate; 1 for roles that are not named. Roles of
            one policy need the same.
    """

    kl_anchor: Mapping[str, float] = field(default_factory=dict)
    coherence: CoherenceSettings = field(default_factory=CoherenceSettings)
    agentwise: tuple[str, ...] = ()
    balance_roles: bool = False
    slot_weights: Mapping[str, SlotWeight] = field(default_factory=dict)
    lr_factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Coherence:
    """What the coherence regulariser saw and did in one optimizer step.

    Attributes:
        cosine: Between the gradient and the memory, before scaling.
        scale: What the gradient was multiplied with.
        memory_norm: Norm of the memory before it took the gradient in.
    """

    cosine: float
    scale: float
    memory_norm: float


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
        "coherence.weights": settings.coherence.weights,
        "agentwise": settings.agentwise,
        "slot_weights": settings.slot_weights,
        "lr_factors": settings.lr_factors,
    }
    found = [
        f"interventions.{name} names {role!r}, which is not a role; there are "
        f"{list(workflow.role_names)}"
        for name, roles in named.items()
        for role in roles
        if role not in workflow.role_names
    ]
    if any(beta < 0 for beta in settings.kl_anchor.values()):
        found.append("interventions.kl_anchor must not be negative")
    if any(not 0 <= weight <= 1 for weight in settings.coherence.weights.values()):
        found.append("interventions.coherence.weights must be between 0 and 1")
    if settings.coherence.window < 1:
        found.append("interventions.coherence.window must be at least 1")
    if any(factor <= 0 for factor in settings.lr_factors.values()):
        found.append("interventions.lr_factors must be greater than 0")
    found += disagreements(
        "interventions.coherence.weights", settings.coherence.weights, workflow, default=0.0
    )
    found += disagreements("interventions.lr_factors", settings.lr_factors, workflow, default=1.0)
    return found


def disagreements(
    name: str, values: Mapping[str, float], workflow: Workflow, *, default: float
) -> list[str]:
    """Roles of one policy that a setting ``name`` gives different values, one sentence each."""
    found = []
    for policy in dict.fromkeys(workflow.policies):
        roles = [role for role in workflow.role_names if workflow.policy_of(role) == policy]
        if len({values.get(role, default) for role in roles}) > 1:
            found.append(
                f"{name}: roles {roles} share policy {policy!r} and need the same "
                "value; route them to policies of their own to tell them apart"
            )
    return found


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
    whole = sizes.total()
    result = {}
    for span in batch:
        kind = settings.slot_weights.get(span.role, "one")
        n = slots.get(span, 1)
        weights = {"one": 1.0, "inverse": 1.0 / n, "inverse_sqrt": 1.0 / sqrt(n), "sum": float(n)}
        weight = weights[kind]
        if settings.balance_roles:
            weight *= whole / (len(sizes) * sizes[span.role])
        result[span] = weight
    return result


def slots_of(spans: Sequence[Span]) -> dict[Span, int]:
    """For every span, how many slots its role had in its episode at its turn."""
    places = [(span.problem, span.copy, span.role, span.turn) for span in spans]
    seen = {(place, span.slot) for place, span in zip(places, spans, strict=True)}
    counts = Counter(place for place, _ in seen)
    return {span: counts[place] for span, place in zip(spans, places, strict=True)}


class GradientMemory:
    """A moving average of each policy's gradient, and the step scaling that it decides.

    ``g *= 1 - weight * clamp(cos(g, memory), 0, 1)``, then the memory becomes
    ``tau * memory + (1 - tau) * g`` with ``tau = 1 - 1 / window``. The first gradient becomes the
    memory it is compared with.

    Attributes:
        averages: Policy to one tensor per parameter; part of the training state.
    """

    def __init__(self) -> None:
        self.averages: dict[str, list[Tensor]] = {}

    @torch.no_grad()
    def scale(
        self,
        policy: str,
        parameters: Sequence[Parameter],
        *,
        weight: float,
        settings: CoherenceSettings,
    ) -> Coherence | None:
        """Scale the gradients of ``parameters`` in place; None if ``weight`` is 0."""
        if weight <= 0:
            return None
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        if policy not in self.averages:
            self.averages[policy] = [one.detach().clone() for one in gradients]
        memory = self.averages[policy]
        pairs = list(zip(gradients, memory, strict=True))
        product = sum(float((g.float() * e.float()).sum()) for g, e in pairs)
        norms = [
            sqrt(sum(float(x.float().square().sum()) for x in side))
            for side in zip(*pairs, strict=True)
        ]
        cosine = product / (norms[0] * norms[1] + settings.epsilon)
        factor = 1.0 - weight * min(1.0, max(0.0, cosine))
        tau = 1.0 - 1.0 / max(settings.window, 1)
        for g, e in pairs:
            g.mul_(factor)
            e.mul_(tau).add_(g, alpha=1.0 - tau)
        return Coherence(cosine, factor, norms[1])
