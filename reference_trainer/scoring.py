"""Spans as padded or packed tensors, and their log-probabilities under the active policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from reference_trainer.episodes import Span

MOST_LOGITS = 1 << 26
"""Logits that are held at once, in float32: 256 MiB. More are computed chunk by chunk, and
again in the backward pass: at a vocabulary of 152,000 those of 5,120 tokens are 3.1 GB a copy, of
which three live at the peak."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of spans, prompt followed by output: one sequence each, or all of them in one.

    Padded, a row is a sequence of its own, filled up on the right; with causal attention nothing on
    the left sees that, so no attention mask is needed. Packed, rows follow each other in a single
    sequence without padding, and positions that start again at 0 keep them apart: transformers
    makes the block-diagonal mask of them, or the row lengths that flash attention takes.

    Attributes:
        spans: The rows.
        tokens_BT: Prompt followed by output; ``(1, T)`` if packed.
        position_BT: Position of every token in its row if packed, else None.
        source_BC: Index into the flattened ``tokens_BT`` whose logits predict each output token.
        target_BC: Output tokens.
        mask_BC: True at output tokens, False at padding.
        rollout_BC: Log-probabilities the rollout engine reported.
        advantage_B: One per row.
    """

    spans: tuple[Span, ...]
    tokens_BT: Tensor
    position_BT: Tensor | None
    source_BC: Tensor
    target_BC: Tensor
    mask_BC: Tensor
    rollout_BC: Tensor
    advantage_B: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same rows on ``device``."""
        tensors: dict[str, Any] = {
            field.name: value.to(device)
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), Tensor)
        }
        return replace(self, **tensors)


@dataclass(frozen=True, slots=True)
class Scores:
    """What a policy says about the output tokens of a batch.

    Attributes:
        logp_BC: Log-probability of each token at the sampling temperature, in nats; 0 at padding.
        entropy_BC: Entropy of the distribution it was drawn from, in nats; 0 at padding, no
            gradient.
    """

    logp_BC: Tensor
    entropy_BC: Tensor


def collate(spans: Sequence[Span], *, pad_id: int, packed: bool = False) -> Batch:
    """Put ``spans`` into one batch: padded, or packed into one sequence."""
    lengths = [len(span.prompt_ids) + len(span.output_ids) for span in spans]
    width, longest = max(lengths), max(len(span.output_ids) for span in spans)
    rows = [[*span.prompt_ids, *span.output_ids] for span in spans]
    starts = [0, *accumulate(lengths[:-1])] if packed else [i * width for i in range(len(spans))]
    if packed:
        tokens = [[token for row in rows for token in row]]
    else:
        tokens = [row + [pad_id] * (width - len(row)) for row in rows]
    positions = [[i for length in lengths for i in range(length)]]

    def outputs(values: Sequence[Any], filler: Any) -> list[Any]:
        return [*values, *[filler] * (longest - len(values))]

    return Batch(
        spans=tuple(spans),
        tokens_BT=torch.tensor(tokens),
        position_BT=torch.tensor(positions) if packed else None,
        source_BC=torch.tensor(
            [
                outputs(
                    [start + len(span.prompt_ids) - 1 + i for i in range(len(span.output_ids))], 0
                )
                for start, span in zip(starts, spans, strict=True)
            ]
        ),
        target_BC=torch.tensor([outputs(span.output_ids, pad_id) for span in spans]),
        mask_BC=torch.tensor([outputs([True] * len(span.output_ids), False) for span in spans]),
        rollout_BC=torch.tensor([outputs(span.logp_rollout, 0.0) for span in spans]),
        advantage_B=torch.tensor([span.advantage for span in spans], dtype=torch.float32),
    )


def score(model: PreTrainedModel, batch: Batch, *, temperature: float) -> Scores:
    """Log-probabilities and entropies of the output tokens under the active policy.

    Logits are computed at output tokens only, and never all of them where they would be large.

    Args:
        model: The causal language model with the adapter that is to be scored active.
        batch: Rows.
        temperature: The one the rows were sampled at: log-probabilities at another temperature are
            of another distribution.
    """
    hidden_BTH = model.model(
        input_ids=batch.tokens_BT, position_ids=batch.position_BT, use_cache=False
    ).last_hidden_state
    keep_BC = batch.mask_BC
    hidden_NH = hidden_BTH.flatten(0, 1)[batch.source_BC[keep_BC]]
    logp_N, entropy_N = token_scores(
        model, hidden_NH, batch.target_BC[keep_BC], temperature=temperature
    )
    zeros_BC = torch.zeros_like(batch.rollout_BC)
    return Scores(
        zeros_BC.masked_scatter(keep_BC, logp_N), zeros_BC.masked_scatter(keep_BC, entropy_N)
    )


def token_scores(
    model: PreTrainedModel, hidden_NH: Tensor, target_N: Tensor, *, temperature: float
) -> tuple[Tensor, Tensor]:
    """Log-probability and entropy, in nats, of each token under the hidden state before it."""

    def chunk(hidden_nH: Tensor, target_n: Tensor) -> tuple[Tensor, Tensor]:
        logp_nV = (model.lm_head(hidden_nH).float() / temperature).log_softmax(-1)
        logp_n = logp_nV.gather(-1, target_n[:, None])[:, 0]
        with torch.no_grad():
            entropy_n = -(logp_nV.exp() * logp_nV).sum(-1)
        return logp_n, entropy_n

    size = max(1, MOST_LOGITS // int(model.config.get_text_config().vocab_size))
    if len(target_N) <= size:
        return chunk(hidden_NH, target_N)
    parts = [
        checkpoint(chunk, hidden_nH, target_n, use_reentrant=False)
        for hidden_nH, target_n in zip(
            torch.split(hidden_NH, size), torch.split(target_N, size), strict=True
        )
    ]
    logp_N, entropy_N = (torch.cat(values) for values in zip(*parts, strict=True))
    return logp_N, entropy_N
