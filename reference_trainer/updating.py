"""One policy's updates within an iteration, and how far they moved its roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Protocol

import torch
from torch import Tensor

from reference_trainer.config import Config
from reference_trainer.episodes import Span
from reference_trainer.grpo import Whole, aggregate, clipped_loss
from reference_trainer.interventions import Coherence, anchor, row_weights, slots_of
from reference_trainer.minibatches import micro_batches, share, split
from reference_trainer.paper_compat import by_length, filled, padded
from reference_trainer.policies import AdapterBank
from reference_trainer.ranks import ALONE, Ranks
from reference_trainer.scoring import Batch, Scores, score
from reference_trainer.seeds import derive


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
        coherence: Mean cosine of the gradients with their moving average, None if that is off.
        lr: The learning rate that it was updated with.
    """

    updates: int
    grad_norm: float
    loss: float
    clipped: float
    anchor_k3: float | None = None
    coherence: float | None = None
    lr: float = 0.0


class Watcher(Protocol):
    """Looks on; it must not change anything."""

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
        minibatches = _prepared(bank, spans, config=config, step=step, ranks=ranks)
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
        for part in micro_batches(spans, rows=config.train.microbatch * ranks.count):
            batch, counted = share(part, pad_id=bank.pad_id, ranks=ranks, device=bank.device)
            micro = _micro(bank, (batch, counted), None, config)
            scores = score(bank.causal_lm, batch, temperature=temperature)
            if counted:
                watch.in_update(_forward(policy, micro, scores, None, 0))


def _update(
    bank: AdapterBank,
    minibatches: Sequence[_MiniBatch],
    *,
    config: Config,
    watch: Watcher | None,
    ranks: Ranks,
) -> PolicyReport:
    first = minibatches[0].micros[0].batch.spans[0]
    policy = first.policy
    tally = _Tally()
    for number, minibatch in enumerate(minibatches):
        loss = 0.0
        for micro in minibatch.micros:
            with watch.around(micro.batch) if watch is not None else nullcontext():
                scores = score(bank.causal_lm, micro.batch, temperature=config.rollout.temperature)
            if config.paper_compat.on_policy_single and len(minibatches) == 1:
                micro = replace(micro, old_BC=scores.logp_BC.detach())
            terms = _loss(micro, scores, minibatch.whole, config)
            if watch is not None and micro.counted:
                watch.in_update(_forward(policy, micro, scores, terms, number))
            torch.autograd.backward(terms.loss)
            loss += float(terms.loss.detach())
            tally.add(micro.batch, terms)
        ranks.sum_gradients(bank.parameters_of(policy))
        coherence = bank.memory.scale(
            policy,
            bank.parameters_of(policy),
            weight=config.interventions.coherence.weights.get(first.role, 0.0),
            settings=config.interventions.coherence,
        )
        tally.end(bank.step(policy), loss, coherence)
    return tally.report(ranks)


@dataclass(frozen=True, slots=True)
class _Micro:
    """One role's rows of a mini-batch, with what does not change while the policy is updated."""

    batch: Batch
    counted: bool
    old_BC: Tensor
    rollout_BC: Tensor
    reference_BC: Tensor | None
    weight_B: Tensor | None


@dataclass(frozen=True, slots=True)
class _MiniBatch:
    micros: tuple[_Micro, ...]
    whole: Whole


@dataclass(slots=True)
class _Tally:
    """Sums over one policy's mini-batches."""

    norms: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)
    clipped: int = 0
    tokens: int = 0
    anchored: int = 0
    k3: float = 0.0

    def add(self, batch: Batch, terms: LossTerms) -> None:
        count = int(batch.mask_BC.sum())
        self.clipped += int(terms.clipped_BC.sum())
        self.tokens += count
        if terms.k3_BC is not None:
            self.k3 += float(terms.k3_BC[batch.mask_BC].sum())
            self.anchored += count

    def end(self, norm: float, loss: float, coherence: Coherence | None) -> None:
        self.norms.append(norm)
        self.losses.append(loss)
        if coherence is not None:
            self.cosines.append(coherence.cosine)

    def report(self, ranks: Ranks) -> PolicyReport:
        counts = (self.clipped, self.tokens, self.k3, self.anchored)
        clipped, tokens, k3, anchored, *losses = ranks.sum([*counts, *self.losses])
        return PolicyReport(
            updates=len(self.norms),
            grad_norm=fmean(self.norms),
            loss=fmean(losses),
            clipped=clipped / tokens,
            anchor_k3=k3 / anchored if anchored else None,
            coherence=fmean(self.cosines) if self.cosines else None,
        )


def _loss(micro: _Micro, scores: Scores, whole: Whole, config: Config) -> LossTerms:
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
        whole=whole,
        weight_B=micro.weight_B,
    )
    return LossTerms(loss, tokens.clipped_BC, k3_BC)


def _forward(
    policy: str, micro: _Micro, scores: Scores, terms: LossTerms | None, steps_before: int
) -> Forward:
    batch = micro.batch
    role = batch.spans[0].role
    return Forward(policy, role, batch, scores, micro.old_BC, micro.rollout_BC, terms, steps_before)


def _prepared(
    bank: AdapterBank, spans: Sequence[Span], *, config: Config, step: int, ranks: Ranks
) -> list[_MiniBatch]:
    """The mini-batches of all epochs, scored before the first optimizer step."""
    compat, train = config.paper_compat, config.train
    rows = padded(spans, ranks=compat.padding_ranks)
    slots = slots_of(spans) if config.interventions.slot_weights else {}
    result = []
    for epoch in range(train.epochs):
        for chosen in _minibatches(rows, config=config, step=step, epoch=epoch):
            weights = row_weights(
                chosen,
                config.interventions,
                slots=slots,
                tokens=train.aggregation == "token-mean",
            )
            whole = Whole(
                rows=train.minibatch if compat.full_minibatches else len(chosen),
                tokens=sum(len(span.output_ids) for span in chosen),
                limit=config.rollout.max_new_tokens,
            )
            # As many rows as that on every rank.
            parts = micro_batches(chosen, rows=train.microbatch * ranks.count)
            micros = [
                _micro(
                    bank,
                    share(part, pad_id=bank.pad_id, ranks=ranks, device=bank.device),
                    weights,
                    config,
                )
                for part in parts
            ]
            result.append(_MiniBatch(tuple(micros), whole))
    return result


@torch.no_grad()
def _micro(
    bank: AdapterBank,
    part: tuple[Batch, bool],
    weights: Mapping[Span, float] | None,
    config: Config,
) -> _Micro:
    batch, counted = part
    temperature = config.rollout.temperature
    old_BC = rollout_BC = batch.rollout_BC
    if config.train.old_logps == "trainer":
        old_BC = score(bank.causal_lm, batch, temperature=temperature).logp_BC
    if config.paper_compat.rollout_logps_at_one:
        rollout_BC = score(bank.causal_lm, batch, temperature=1.0).logp_BC
    reference_BC = None
    if config.interventions.kl_anchor.get(batch.spans[0].role, 0.0) > 0:
        with bank.without_adapters():
            reference_BC = score(bank.causal_lm, batch, temperature=temperature).logp_BC
    weight_B = None
    if weights is not None:
        weight_B = torch.tensor([weights[span] for span in batch.spans], device=bank.device)
    return _Micro(batch, counted, old_BC, rollout_BC, reference_BC, weight_B)


def _minibatches(
    spans: Sequence[Span], *, config: Config, step: int, epoch: int
) -> list[list[Span]]:
    train, compat = config.train, config.paper_compat
    if steps := train.updates.get(spans[0].role):
        total = steps * train.minibatch
    elif train.minibatch_counts == "episodes":
        total = config.rollout.problems * config.rollout.copies
    else:
        total = len(spans)
    count = min(len(spans), -(-total // train.minibatch))
    # The first epoch's name is the same however many follow it.
    later = (epoch,) if epoch else ()
    seed = derive(config.seed, "order", step, spans[0].policy, *later)
    if not compat.rows_by_length and not compat.full_minibatches:
        return split(spans, count=count, order=train.minibatch_order, seed=seed)
    if compat.rows_by_length:
        rows = by_length(spans)
    else:
        (rows,) = split(spans, count=1, order=train.minibatch_order, seed=seed)
    size = train.minibatch if compat.full_minibatches else -(-len(rows) // count)
    return filled(rows, size=size)
