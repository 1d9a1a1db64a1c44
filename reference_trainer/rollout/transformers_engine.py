"""A batched sampling loop over a transformers model with a key-value cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import DynamicCache

from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Sampling
from reference_trainer.seeds import uniforms

_COMPACT_AT = 0.75
"""Finished rows leave the batch at this live share: copying the cache has its price too."""


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Tokens and their log-probabilities, one row per prompt; nothing after the end token counts."""

    tokens_BC: Tensor
    logps_BC: Tensor


class TransformersEngine:
    """Samples with the very weights that are trained, so only rounding can differ.

    Args:
        bank: Model and adapters.
        end_id: Token that ends an output.
    """

    def __init__(self, bank: AdapterBank, *, end_id: int) -> None:
        self._bank = bank
        self._end_id = end_id

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        policy: str,
        sampling: Sampling,
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample one completion per prompt; see :class:`~reference_trainer.rollout.engine.Engine`.

        Prompts are padded on the left. No generator has a state: the number that draws a token is
        a function of the prompt's seed and the token's place in the output.
        """
        if not prompts:
            return []
        with self._bank.mode(training=False), self._bank.fused(policy):
            outputs = self._loop(prompts, sampling, seeds)
        rows = zip(outputs.tokens_BC.tolist(), outputs.logps_BC.tolist(), strict=True)
        return [self._completion(tokens, logps) for tokens, logps in rows]

    def _loop(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> _Outputs:
        model = self._bank.causal_lm
        uniform_CB = torch.from_numpy(uniforms(seeds, sampling.max_new_tokens).T.copy())
        # The rollouts of a problem start from one prompt: each different prompt is read once.
        different = {tuple(prompt): i for i, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        tokens, attended = _pad_left(list(different), self._end_id)
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        cache = DynamicCache(config=model.config)
        logits = self._forward(tokens, attended, positions, cache)
        live = torch.arange(len(prompts))
        if len(different) < len(prompts):
            row_of = torch.tensor([different[tuple(prompt)] for prompt in prompts])
            cache.batch_select_indices(row_of)
            logits, positions, attended = logits[row_of], positions[row_of], attended[row_of]
        outputs = _Outputs(
            torch.full((len(prompts), sampling.max_new_tokens), self._end_id),
            torch.zeros(len(prompts), sampling.max_new_tokens),
        )
        alive = torch.ones(len(prompts), dtype=torch.bool)
        for place in range(sampling.max_new_tokens):
            if place > 0:
                positions = positions[:, -1:] + 1
                attended = torch.cat([attended, attended.new_ones(len(live), 1)], dim=1)
                logits = self._forward(drawn[:, None], attended, positions, cache)
            drawn, logps = _draw(logits.float() / sampling.temperature, uniform_CB[place, live])
            outputs.tokens_BC[live, place] = drawn
            outputs.logps_BC[live, place] = logps
            alive &= drawn != self._end_id
            left = int(alive.sum())
            if not left:
                break
            if left <= _COMPACT_AT * len(live):
                cache.batch_select_indices(alive.nonzero()[:, 0])
                drawn, positions, attended = drawn[alive], positions[alive], attended[alive]
                live, alive = live[alive], alive[alive]
        return outputs

    def _forward(
        self, tokens: Tensor, attended: Tensor, positions: Tensor, cache: DynamicCache
    ) -> Tensor:
        """Logits after the last token of every row."""
        logits: Tensor = self._bank.causal_lm(
            input_ids=tokens,
            attention_mask=attended,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits

    def _completion(self, tokens: list[int], logps: list[float]) -> Completion:
        stopped = self._end_id in tokens
        length = tokens.index(self._end_id) + 1 if stopped else len(tokens)
        return Completion(
            tuple(tokens[:length]), tuple(logps[:length]), "stop" if stopped else "length"
        )


def _draw(logits_BV: Tensor, uniform_B: Tensor) -> tuple[Tensor, Tensor]:
    """One token per row and its log-probability, from one number in [0, 1) per row.

    The token is the first whose cumulated probability exceeds the number, so one of probability 0
    is never drawn. Sums are in double precision and the number is scaled by the last of them: in
    single precision the tail of a large vocabulary would be lost.
    """
    logps_BV = logits_BV.log_softmax(-1)
    sums_BV = logps_BV.exp().cumsum(-1, dtype=torch.float64)
    drawn_B1 = torch.searchsorted(sums_BV, uniform_B[:, None] * sums_BV[:, -1:], right=True)
    return drawn_B1[:, 0], logps_BV.gather(-1, drawn_B1)[:, 0]


def _pad_left(prompts: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    width = max(len(prompt) for prompt in prompts)
    tokens = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    attended = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(tokens), torch.tensor(attended)
