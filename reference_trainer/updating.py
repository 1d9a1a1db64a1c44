"""One policy's updates within an iteration, and how far they moved its roles."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Protocol

import torch
from torch import Tensor

from reference_trainer.config import Config
from reference_trainer.episodes import Span
from reference_trainer.grpo import LossTerms, clipped_loss
from reference_trainer.policies import AdapterBank
from reference_trainer.scoring import Batch, Scores, collate, score
from reference_trainer.seeds import derive


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
        terms: The loss.
        steps_before: Optimizer steps that this policy already made in this iteration.
    """

    policy: str
    role: str
    batch: Batch
    scores: Scores
    old_BC: Tensor
    terms: LossTerms
    steps_before: int


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What happened to one policy in one iteration.

    Attributes:
        updates: Optimizer steps.
        grad_norm: Mean norm before clipping.
        loss: Mean loss of the mini-batches.
        clipped: Share of tokens whose clipped branch was active.
    """

    updates: int
    grad_norm: float
    loss: float
    clipped: float


@dataclass(frozen=True, slots=True)
class Rescored:
    """Some rows of one role, scored again after the iteration's last optimizer step.

    Attributes:
        role: The role.
        batch: The rows.
        before_BC: Log-probabilities at the start of the iteration.
        after: Under the updated weights.
        steps_between: Optimizer steps between the two.
    """

    role: str
    batch: Batch
    before_BC: Tensor
    after: Scores
    steps_between: int

    def k3(self) -> float:
        """Mean over tokens of ``exp(d) - d - 1``, ``d`` = after - before: a KL that is >= 0."""
        difference = (self.after.logp_BC - self.before_BC)[self.batch.mask_BC].double()
        return float((difference.exp() - difference - 1).mean())

    def chi2(self) -> float:
        """Mean over tokens of ``rho² - 1``, ``rho`` = exp(clip(after - before, -20, 20))."""
        difference = (self.after.logp_BC - self.before_BC)[self.batch.mask_BC].double()
        return float(((2 * difference.clamp(-20, 20)).exp() - 1).mean())


class Watcher(Protocol):
    """Looks on; it must not change anything."""

    def around(self, batch: Batch) -> AbstractContextManager[object]:
        """Entered around the forward of a micro-batch."""
        ...

    def in_update(self, forward: Forward) -> None:
        """Called with every micro-batch, before its backward pass."""
        ...


def update_policy(
    bank: AdapterBank, spans: Sequence[Span], *, config: Config, step: int, watch: Watcher | None
) -> PolicyReport:
    """All mini-batches of one policy.

    Args:
        bank: Adapters; that of the spans' policy is activated and changed.
        spans: All spans of one policy, advantages filled in.
        config: The run.
        step: Iteration, from 1; decides the order of the rows.
        watch: Looks on, None for nobody.
    """
    policy = spans[0].policy
    bank.activate(policy)
    bank.model.train()
    minibatches = [
        [(micro, _old_logps(bank, micro, config)) for micro in _by_role(rows, bank.pad_id)]
        for rows in _minibatches(spans, config=config, step=step)
    ]
    norms, losses, clipped, tokens = [], [], 0, 0
    for number, micros in enumerate(minibatches):
        rows_in_batch = sum(len(micro.spans) for micro, _ in micros)
        loss = 0.0
        for micro, old_BC in micros:
            with watch.around(micro) if watch is not None else nullcontext():
                scores = score(bank.causal_lm, micro, temperature=config.rollout.temperature)
            terms = clipped_loss(
                scores.logp_BC,
                old_BC,
                advantage_B=micro.advantage_B,
                mask_BC=micro.mask_BC,
                clip=config.train.clip,
                rows_in_batch=rows_in_batch,
            )
            if watch is not None:
                watch.in_update(
                    Forward(policy, micro.spans[0].role, micro, scores, old_BC, terms, number)
                )
            torch.autograd.backward(terms.loss)
            loss += float(terms.loss.detach())
            clipped += int(terms.clipped_BC.sum())
            tokens += int(micro.mask_BC.sum())
        norms.append(bank.step(policy))
        losses.append(loss)
    return PolicyReport(len(minibatches), fmean(norms), fmean(losses), clipped / tokens)


@torch.no_grad()
def rescore(bank: AdapterBank, spans: Sequence[Span], *, config: Config, updates: int) -> Rescored:
    """Score an even choice of one role's spans again after the update."""
    wanted = min(len(spans), config.monitor.rescore_rows)
    chosen = [spans[i * len(spans) // wanted] for i in range(wanted)]
    bank.activate(chosen[0].policy)
    bank.model.eval()
    batch = collate(chosen, pad_id=bank.pad_id)
    after = score(bank.causal_lm, batch, temperature=config.rollout.temperature)
    return Rescored(chosen[0].role, batch, batch.rollout_BC, after, updates)


def _minibatches(spans: Sequence[Span], *, config: Config, step: int) -> list[list[Span]]:
    """Shuffled spans in mini-batches of nearly equal size.

    Rows are shuffled, not sorted by length: length is role, and a mini-batch of one role would give
    the shared policy one role's gradient after the other's.
    """
    order = list(spans)
    random.Random(derive(config.seed, "order", step, spans[0].policy)).shuffle(order)
    if config.train.minibatch_counts == "episodes":
        total = config.rollout.problems * config.rollout.copies
    else:
        total = len(spans)
    count = min(len(order), -(-total // config.train.minibatch))
    bounds = [len(order) * i // count for i in range(count + 1)]
    return [order[start:end] for start, end in pairwise(bounds)]


def _by_role(spans: Sequence[Span], pad_id: int) -> list[Batch]:
    roles = dict.fromkeys(sorted(span.role for span in spans))
    return [collate([span for span in spans if span.role == role], pad_id=pad_id) for role in roles]


@torch.no_grad()
def _old_logps(bank: AdapterBank, batch: Batch, config: Config) -> Tensor:
    if config.train.old_logps == "rollout":
        return batch.rollout_BC
    return score(bank.causal_lm, batch, temperature=config.rollout.temperature).logp_BC
