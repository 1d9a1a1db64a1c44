"""Spans as padded tensors, and their log-probabilities under the active policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from transformers import PreTrainedModel

from reference_trainer.episodes import Span


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of spans, prompt and output in one sequence, padded on the right.

    With causal attention nothing on the left sees the padding, so no attention mask is needed.

    Attributes:
        spans: The rows.
        tokens_BT: Prompt followed by output.
        source_BC: Position whose logits predict each output token.
        target_BC: Output tokens.
        mask_BC: True at output tokens, False at padding.
        rollout_BC: Log-probabilities the rollout engine reported.
        advantage_B: One per row.
    """

    spans: tuple[Span, ...]
    tokens_BT: Tensor
    source_BC: Tensor
    target_BC: Tensor
    mask_BC: Tensor
    rollout_BC: Tensor
    advantage_B: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same rows on ``device``."""
        tensors = [getattr(self, one.name).to(device) for one in fields(self)[1:]]
        return Batch(self.spans, *tensors)


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


def collate(spans: Sequence[Span], *, pad_id: int) -> Batch:
    """Pad ``spans`` into one batch."""
    width = max(len(span.prompt_ids) + len(span.output_ids) for span in spans)
    longest = max(len(span.output_ids) for span in spans)

    def outputs(span: Span) -> int:
        return longest - len(span.output_ids)

    return Batch(
        spans=tuple(spans),
        tokens_BT=torch.tensor(
            [
                [*span.prompt_ids, *span.output_ids]
                + [pad_id] * (width - len(span.prompt_ids) - len(span.output_ids))
                for span in spans
            ]
        ),
        source_BC=torch.tensor(
            [
                [
                    len(span.prompt_ids) - 1 + i if i < len(span.output_ids) else 0
                    for i in range(longest)
                ]
                for span in spans
            ]
        ),
        target_BC=torch.tensor([[*span.output_ids] + [pad_id] * outputs(span) for span in spans]),
        mask_BC=torch.tensor(
            [[True] * len(span.output_ids) + [False] * outputs(span) for span in spans]
        ),
        rollout_BC=torch.tensor([[*span.logp_rollout] + [0.0] * outputs(span) for span in spans]),
        advantage_B=torch.tensor([span.advantage for span in spans], dtype=torch.float32),
    )


def score(model: PreTrainedModel, batch: Batch, *, temperature: float) -> Scores:
    """Log-probabilities and entropies of the output tokens under the active policy.

    Logits are computed at output positions only.

    Args:
        model: The causal language model with the adapter that is to be scored active.
        batch: Rows.
        temperature: The one the rows were sampled at: log-probabilities at another temperature are
            of another distribution.
    """
    hidden_BTH = model.model(input_ids=batch.tokens_BT, use_cache=False).last_hidden_state
    source_BC1 = batch.source_BC[..., None]
    hidden_BCH = hidden_BTH.gather(1, source_BC1.expand(-1, -1, hidden_BTH.shape[-1]))
    logp_BCV = (model.lm_head(hidden_BCH).float() / temperature).log_softmax(-1)
    logp_BC = logp_BCV.gather(-1, batch.target_BC[..., None])[..., 0]
    with torch.no_grad():
        entropy_BC = -(logp_BCV.exp() * logp_BCV).sum(-1)
    keep = batch.mask_BC
    return Scores(logp_BC.masked_fill(~keep, 0.0), entropy_BC.masked_fill(~keep, 0.0))
