"""One policy's updates within an iteration, and how far they moved its roles."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Protocol

import torch
from torch import Tensor

from reference_trainer.config import Config
from reference_trainer.episodes import Span
from reference_trainer.grpo import Whole, aggregate, clipped_loss
from reference_trainer.interventions import anchor
from reference_trainer.policies import AdapterBank
from reference_trainer.ranks import ALONE, Ranks
from reference_trainer.scored_batches import MicroBatch, MiniBatch, batches, prepared, scored
from reference_trainer.scoring import Batch, Scores, score


@dataclass(frozen=True, slots=True)
class LossTerms:
    """The loss of some rows and what happened in it.

    Attributes:
        loss: Their part of the mini-batch's loss: a scalar with a gradient.
        clipped_BC: True where the clipped branch was the larger one.
        k3_BC: Distance of every token from the base model, None for a role without an anchor.
    """

    loss: Tensor
    clipped_BC: Tensor
    k3_BC: Tensor | None


@dataclass(frozen=True, slots=True)
class Forward:
    """What one micro-batch of one role looked like in the update.

    Attributes:
        policy: The policy being updated.
        role: The role of all rows: mini-batches are split by role, which also keeps padding small.
        batch: The rows.
        scores: Log-probabilities under the current weights, before this mini-batch's optimizer
            step.
        old_BC: Log-probabilities at the start of the iteration.
        rollout_BC: Log-probabilities as the rollout reported them.
        terms: The loss; None for rows that stay out of it.
        steps_before: Optimizer steps that this policy already made in this iteration.
    """

    policy: str
    role: str
    batch: Batch
    scores: Scores
    old_BC: Tensor
    rollout_BC: Tensor
    terms: LossTerms | None
    steps_before: int


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What happened to one policy in one iteration.

    Attributes:
        updates: Optimizer steps.
        grad_norm: Mean norm before clipping.
        loss: Mean loss of the mini-batches.
        clipped: Share of tokens whose clipped branch was active.
        anchor_k3: Mean distance of the anchored roles' tokens from the base model, None without an
            anchor.
        lr: The learning rate that it was updated with.
        rollout_chi2: Mean of ``rho² - 1`` over scored tokens, ``rho`` of the weights in the update
            against the rollout as it was reported: the released code's series. At two temperatures
            (``paper_compat.rollout_logps_at_one``) it has a floor that is not drift. None if
            nothing was scored.
    """

    updates: int
    grad_norm: float
    loss: float
    clipped: float
    anchor_k3: float | None = None
    lr: float = 0.0
    rollout_chi2: float | None = None


class Watcher(Protocol):
    """Looks on; it must not change anything."""

    @property
    def measuring(self) -> bool:
        """Whether gradients are measured in this iteration: then also those that are 0."""
        ...

    def around(self, batch: Batch) -> AbstractContextManager[object]:
        """Entered around the forward of a micro-batch."""
        ...

    def in_update(self, forward: Forward) -> None:
        """Called with every micro-batch, before its backward pass."""
        ...


def update_policy(
    bank: AdapterBank,
    spans: Sequence[Span],
    *,
    config: Config,
    step: int,
    watch: Watcher | None,
    ranks: Ranks = ALONE,
) -> PolicyReport:
    """All mini-batches of one policy, ``train.epochs`` times over.

    Args:
        bank: Adapters; that of the spans' policy is activated and changed.
        spans: All spans of one policy, advantages filled in.
        config: The run.
        step: Iteration, from 1; decides the order of the rows.
        watch: Looks on, None for nobody; at the rows of its own rank.
        ranks: Processes that share the rows; all of them get the same report.
    """
    policy = spans[0].policy
    bank.activate(policy)
    with bank.mode(training=True):
        minibatches = prepared(bank, spans, config=config, step=step, ranks=ranks)
        report = _update(bank, minibatches, config=config, watch=watch, ranks=ranks)
    return replace(report, lr=bank.lr(policy))


@torch.no_grad()
def look_at(
    bank: AdapterBank,
    spans: Sequence[Span],
    *,
    config: Config,
    watch: Watcher,
    ranks: Ranks = ALONE,
) -> None:
    """Show ``watch`` rows of one policy that stay out of its loss, before the policy is updated.

    Args:
        bank: Adapters; that of the spans' policy is activated, nothing is changed.
        spans: Rows of one policy, advantages filled in.
        config: The run.
        watch: Looks on.
        ranks: Processes that share the rows.
    """
    policy = spans[0].policy
    bank.activate(policy)
    temperature = config.rollout.temperature
    with bank.mode(training=False):
        for batch, counted in batches(bank, spans, config, ranks):
            micro = scored(bank, (batch, counted), None, config)
            scores = score(bank.causal_lm, batch, temperature=temperature)
            if counted:
                watch.in_update(_forward(policy, micro, scores, None, 0))


def _update(
    bank: AdapterBank,
    minibatches: Sequence[MiniBatch],
    *,
    config: Config,
    watch: Watcher | None,
    ranks: Ranks,
) -> PolicyReport:
    policy = minibatches[0].micros[0].batch.spans[0].policy
    tally = _Tally()
    for number, minibatch in enumerate(minibatches):
        loss = 0.0
        every = watch is not None and watch.measuring
        if not every and not any(micro.trained for micro in minibatch.micros):
            # AdamW goes on by its momentum where the gradient is 0, and rests where there is none.
            for parameter in bank.parameters_of(policy):
                parameter.grad = torch.zeros_like(parameter)
        for micro in minibatch.micros:
            if not micro.trained and watch is None:
                tally.tokens += int(micro.batch.mask_BC.sum())
                continue
            with (
                torch.set_grad_enabled(every or micro.trained),
                watch.around(micro.batch) if watch is not None else nullcontext(),
            ):
                scores = score(bank.causal_lm, micro.batch, temperature=config.rollout.temperature)
            if config.paper_compat.on_policy_single and len(minibatches) == 1:
                micro = replace(micro, old_BC=scores.logp_BC.detach())
            terms = _loss(micro, scores, minibatch.size, config)
            if watch is not None and micro.counted:
                watch.in_update(_forward(policy, micro, scores, terms, number))
            if every or micro.trained:
                torch.autograd.backward(terms.loss)
            loss += float(terms.loss.detach())
            tally.add(micro, scores, terms)
        ranks.sum_gradients(bank.parameters_of(policy))
        tally.norms.append(bank.step(policy))
        tally.losses.append(loss)
    return tally.report(ranks)


@dataclass(slots=True)
class _Tally:
    """Sums over one policy's mini-batches."""

    norms: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    clipped: int = 0
    tokens: int = 0
    anchored: int = 0
    k3: float = 0.0
    chi2: float = 0.0
    scored: int = 0

    def add(self, micro: MicroBatch, scores: Scores, terms: LossTerms) -> None:
        batch = micro.batch
        count = int(batch.mask_BC.sum())
        self.clipped += int(terms.clipped_BC.sum())
        self.tokens += count
        d_N = (scores.logp_BC.detach() - micro.rollout_BC)[batch.mask_BC].double()
        self.chi2 += float(torch.expm1(2 * d_N.clamp(-20, 20)).sum())
        self.scored += count
        if terms.k3_BC is not None:
            self.k3 += float(terms.k3_BC[batch.mask_BC].sum())
            self.anchored += count

    def report(self, ranks: Ranks) -> PolicyReport:
        sums = (self.clipped, self.tokens, self.k3, self.anchored, self.chi2, self.scored)
        clipped, tokens, k3, anchored, chi2, scored, *losses = ranks.sum([*sums, *self.losses])
        return PolicyReport(
            updates=len(self.norms),
            grad_norm=fmean(self.norms),
            loss=fmean(losses),
            clipped=clipped / tokens,
            anchor_k3=k3 / anchored if anchored else None,
            rollout_chi2=chi2 / scored if scored else None,
        )


def _loss(micro: MicroBatch, scores: Scores, size: Whole, config: Config) -> LossTerms:
    """The surrogate of one role's rows, and its anchor if it has one."""
    batch = micro.batch
    tokens = clipped_loss(
        scores.logp_BC,
        micro.old_BC,
        advantage_B=batch.advantage_B,
        mask_BC=batch.mask_BC,
        clip=config.train.clip,
    )
    values_BC, k3_BC = tokens.values_BC, None
    if micro.reference_BC is not None:
        beta = config.interventions.kl_anchor[batch.spans[0].role]
        k3_BC = anchor(scores.logp_BC, micro.reference_BC)
        values_BC = values_BC + beta * k3_BC
        k3_BC = k3_BC.detach()
    loss = aggregate(
        values_BC,
        batch.mask_BC,
        by=config.train.aggregation,
        size=size,
        weight_B=micro.weight_B,
    )
    return LossTerms(loss, tokens.clipped_BC, k3_BC)


def _forward(
    policy: str, micro: MicroBatch, scores: Scores, terms: LossTerms | None, steps_before: int
) -> Forward:
    batch = micro.batch
    role = batch.spans[0].role
    return Forward(policy, role, batch, scores, micro.old_BC, micro.rollout_BC, terms, steps_before)
