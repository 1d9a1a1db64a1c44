"""The mini-batches of one policy's update, scored before its first optimizer step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from reference_trainer.config import Config
from reference_trainer.episodes import Span
from reference_trainer.grpo import Whole
from reference_trainer.interventions import row_weights, slots_of
from reference_trainer.minibatches import micro_batches, share, split
from reference_trainer.paper_compat import by_length, filled, padded
from reference_trainer.policies import AdapterBank
from reference_trainer.ranks import Ranks
from reference_trainer.scoring import Batch, score
from reference_trainer.seeds import derive


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One role's rows of a mini-batch, with what does not change while the policy is updated.

    Attributes:
        batch: The rows.
        counted: False for rows of another rank that stand in.
        trained: False for rows whose gradient is 0 whatever the policy says: no advantage and no
            anchor. They are watched, but there is no backward pass through them.
        old_BC: Denominator of the ratio.
        rollout_BC: As the rollout reported it.
        reference_BC: Of the base model, for a role with an anchor.
        weight_B: Factors of the rows, None for 1.
    """

    batch: Batch
    counted: bool
    trained: bool
    old_BC: Tensor
    rollout_BC: Tensor
    reference_BC: Tensor | None
    weight_B: Tensor | None


@dataclass(frozen=True, slots=True)
class MiniBatch:
    """Rows that share an optimizer step.

    Attributes:
        micros: Its rows, as they go through the model.
        size: What the loss is divided by.
    """

    micros: tuple[MicroBatch, ...]
    size: Whole


def prepared(
    bank: AdapterBank, spans: Sequence[Span], *, config: Config, step: int, ranks: Ranks
) -> list[MiniBatch]:
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
            size = Whole(
                rows=train.minibatch if compat.full_minibatches else len(chosen),
                tokens=sum(len(span.output_ids) for span in chosen),
                limit=config.rollout.max_new_tokens,
            )
            micros = [
                scored(bank, batch, weights, config)
                for rows in _by_gradient(chosen, config)
                for batch in batches(bank, rows, config, ranks)
            ]
            result.append(MiniBatch(tuple(micros), size))
    return result


def _by_gradient(spans: Sequence[Span], config: Config) -> list[list[Span]]:
    """Rows that have a gradient, and rows that have none."""
    parts: list[list[Span]] = [[], []]
    for span in spans:
        parts[not _has_gradient(span, config)].append(span)
    return [part for part in parts if part]


def _has_gradient(span: Span, config: Config) -> bool:
    return span.advantage != 0 or config.interventions.kl_anchor.get(span.role, 0.0) > 0


def batches(
    bank: AdapterBank, spans: Sequence[Span], config: Config, ranks: Ranks
) -> Iterator[tuple[Batch, bool]]:
    """This rank's micro-batches, and whether they count: as many on every rank."""
    train = config.train
    for part in micro_batches(
        spans,
        rows=train.microbatch * ranks.count,
        tokens=train.microbatch_tokens * ranks.count,
        packed=train.packed,
    ):
        yield share(part, pad_id=bank.pad_id, ranks=ranks, device=bank.device, packed=train.packed)


@torch.no_grad()
def scored(
    bank: AdapterBank,
    part: tuple[Batch, bool],
    weights: Mapping[Span, float] | None,
    config: Config,
) -> MicroBatch:
    """A micro-batch with what the weights before the update say of it."""
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
    trained = _has_gradient(batch.spans[0], config)
    return MicroBatch(batch, counted, trained, old_BC, rollout_BC, reference_BC, weight_B)


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
