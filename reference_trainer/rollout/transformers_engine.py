"""A batched sampling loop over a transformers model with a key-value cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import DynamicCache

from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Sampling
from reference_trainer.seeds import uniforms

_COMPACT_AT = 0.75
"""Finished rows leave the batch at this live share: copying the cache has its price too."""


@dataclass(slots=True)
class _Outputs:
    """Tokens and log-probabilities collected so far, per prompt."""

    ids: list[list[int]]
    logps: list[list[float]]
    stopped: list[bool] = field(default_factory=list)


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
        model = self._bank.model
        was_training = model.training
        model.eval()
        try:
            with self._bank.fused(policy):
                outputs = self._loop(prompts, sampling, seeds)
        finally:
            model.train(was_training)
        return [
            Completion(tuple(ids), tuple(logps), "stop" if stopped else "length")
            for ids, logps, stopped in zip(outputs.ids, outputs.logps, outputs.stopped, strict=True)
        ]

    def _loop(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> _Outputs:
        model = self._bank.causal_lm
        uniform_CB = torch.from_numpy(uniforms(seeds, sampling.max_new_tokens).T.copy())
        tokens, attended = _pad_left(prompts, self._end_id)
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        cache = DynamicCache(config=model.config)
        live = torch.arange(len(prompts))
        outputs = _Outputs([[] for _ in prompts], [[] for _ in prompts], [False] * len(prompts))
        alive = torch.ones(len(prompts), dtype=torch.bool)
        for place in range(sampling.max_new_tokens):
            logits = model(
                input_ids=tokens,
                attention_mask=attended,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            ).logits[:, -1]
            drawn, logps = _draw(logits.float() / sampling.temperature, uniform_CB[place, live])
            self._collect(outputs, live, alive=alive, drawn=drawn, logps=logps)
            alive &= drawn != self._end_id
            if not bool(alive.any()):
                break
            tokens, positions = drawn[:, None], positions[:, -1:] + 1
            attended = torch.cat([attended, attended.new_ones(len(live), 1)], dim=1)
            if float(alive.float().mean()) <= _COMPACT_AT:
                cache.batch_select_indices(alive.nonzero()[:, 0])
                tokens, positions, attended = tokens[alive], positions[alive], attended[alive]
                live, alive = live[alive], alive[alive]
        return outputs

    def _collect(
        self, outputs: _Outputs, live: Tensor, *, alive: Tensor, drawn: Tensor, logps: Tensor
    ) -> None:
        rows = zip(live.tolist(), alive.tolist(), drawn.tolist(), logps.tolist(), strict=True)
        for row, is_alive, token, logp in rows:
            if is_alive:
                outputs.ids[row].append(token)
                outputs.logps[row].append(logp)
                outputs.stopped[row] = token == self._end_id


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
