"""A batched sampling loop over a transformers model with a key-value cache."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor
from transformers import DynamicCache

from reference_trainer.errors import RolloutError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Request, Sampling
from reference_trainer.seeds import uniforms

_COMPACT_AT = 0.75
"""Finished rows leave the batch at this live share: copying the cache has its price too."""


@dataclass(frozen=True, slots=True)
class _Outputs:
    """Tokens and log-probabilities, one row per prompt; nothing after the end token counts."""

    tokens_BC: Tensor
    logps_BC: Tensor


class _Reading:
    """What the model has read so far, row by row.

    Args:
        cache: Keys and values.
        attended_BT: 0 at the padding left of a prompt, 1 elsewhere; as wide as it can get.
        dtype: Of the attention scores.
    """

    def __init__(self, cache: DynamicCache, attended_BT: Tensor, *, dtype: torch.dtype) -> None:
        self.cache = cache
        self.attended_BT = attended_BT
        self.width = 0
        unseen_B11T = attended_BT[:, None, None] == 0
        self.bias_B11T = torch.zeros(unseen_B11T.shape, dtype=dtype, device=attended_BT.device)
        self.bias_B11T.masked_fill_(unseen_B11T, torch.finfo(dtype).min)

    def select(self, rows: Tensor) -> None:
        """Keep these rows, in this order; a row may come several times."""
        self.cache.batch_select_indices(rows)
        self.attended_BT, self.bias_B11T = self.attended_BT[rows], self.bias_B11T[rows]


class TransformersEngine:
    """Samples with the very weights that are trained, so only rounding can differ.

    A batch holds rows of one policy, with its adapter added into the base weights: in mixed batches
    every layer would compute base and adapters by themselves, which takes longer.

    Args:
        bank: Model and adapters.
        end_ids: Tokens that end an output.
        max_rows: Most rows of a batch; 0 for no limit. If memory runs out, it is lowered.
    """

    continuous = False
    has_copy = False

    def __init__(self, bank: AdapterBank, *, end_ids: Sequence[int], max_rows: int = 0) -> None:
        self._bank = bank
        self._ends = tuple(end_ids)
        self._max_rows = max_rows
        self._waiting: dict[int, Request] = {}
        config = bank.causal_lm.config
        self._full_attention = config._attn_implementation in ("sdpa", "eager") and set(
            getattr(config, "layer_types", ["unknown"])
        ) == {"full_attention"}

    def sync(self, policies: Sequence[str]) -> None:
        """Nothing to take over: it samples with the weights themselves."""

    def rest(self) -> None:
        """Nothing to give back: it holds nothing of its own between two batches."""

    def submit(self, requests: Mapping[int, Request]) -> None:
        """Keep requests for :meth:`collect`."""
        self._waiting |= requests

    def collect(self) -> dict[int, Completion]:
        """Sample the next batch: requests of one policy, in the order in which they came.

        Prompts are padded on the left. No generator has a state: the number that draws a token is
        a function of the request's seed and the token's place in the output.

        Raises:
            RolloutError: If there is not even the memory for one row.
        """
        while rows := self._next():
            self._waiting = {
                number: request for number, request in self._waiting.items() if number not in rows
            }
            completions = self._batch(list(rows.values()))
            if completions is not None:
                return dict(zip(rows, completions, strict=True))
            self._lower_limit(list(rows.values()))
            self._waiting = rows | self._waiting
        return {}

    def _next(self) -> dict[int, Request]:
        """The requests of the next batch."""
        if not self._waiting:
            return {}
        first = next(iter(self._waiting.values()))
        alike = (
            (number, request)
            for number, request in self._waiting.items()
            if request.policy == first.policy and request.sampling == first.sampling
        )
        return dict(islice(alike, self._max_rows or None))

    def _batch(self, rows: Sequence[Request]) -> list[Completion] | None:
        """Outputs of requests of one policy; None if they need more memory than there is."""
        first = rows[0]
        prompts, seeds = (
            [request.prompt_ids for request in rows],
            [request.seed for request in rows],
        )
        try:
            with (
                torch.no_grad(),
                self._bank.mode(training=False),
                self._bank.fused(first.policy),
                torch.inference_mode(),
            ):
                outputs = self._loop(prompts, first.sampling, seeds)
            sampled = zip(outputs.tokens_BC.tolist(), outputs.logps_BC.tolist(), strict=True)
            return [self._completion(tokens, logps) for tokens, logps in sampled]
        except (RuntimeError, MemoryError) as error:
            if not _out_of_memory(error):
                raise
            return None

    def _lower_limit(self, rows: Sequence[Request]) -> None:
        """Halve the limit after ``rows`` needed more memory than there is; the run goes on."""
        longest = max(len(request.prompt_ids) for request in rows) + rows[0].sampling.max_new_tokens
        count = "one row" if len(rows) == 1 else f"{len(rows)} rows at a time"
        what = f"there is not enough memory to sample {count} of up to {longest} tokens"
        if len(rows) == 1:
            raise RolloutError(
                f"{what}: lower rollout.max_new_tokens or rules.max_prompt_tokens, or use a device "
                "with more memory. A run with checkpoints can be resumed"
            )
        self._max_rows = len(rows) // 2
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        print(
            f"{what}: the run goes on with rollout.max_rows = {self._max_rows}",
            file=sys.stderr,
        )

    def _loop(
        self, prompts: Sequence[Sequence[int]], sampling: Sampling, seeds: Sequence[int]
    ) -> _Outputs:
        device = self._bank.device
        uniform_CB = torch.from_numpy(uniforms(seeds, sampling.max_new_tokens).T.copy()).to(device)
        logits, reading = self._read(prompts, room=sampling.max_new_tokens)
        live = torch.arange(len(prompts), device=device)
        shape = (len(prompts), sampling.max_new_tokens)
        outputs = _Outputs(
            torch.full(shape, self._ends[0], device=device), torch.zeros(shape, device=device)
        )
        alive = torch.ones(len(prompts), dtype=torch.bool, device=device)
        ends = torch.tensor(self._ends, device=device)
        for place in range(sampling.max_new_tokens):
            drawn, logps = _draw(logits.float() / sampling.temperature, uniform_CB[place, live])
            outputs.tokens_BC[live, place] = drawn
            outputs.logps_BC[live, place] = logps
            alive &= ~torch.isin(drawn, ends)
            left = int(alive.sum())
            if not left or place + 1 == sampling.max_new_tokens:
                break
            if left <= _COMPACT_AT * len(live):
                reading.select(alive.nonzero()[:, 0])
                drawn, live, alive = drawn[alive], live[alive], alive[alive]
            logits = self._forward(drawn[:, None], reading)
        longest = slice(place + 1)
        return _Outputs(outputs.tokens_BC[:, longest], outputs.logps_BC[:, longest])

    def _read(self, prompts: Sequence[Sequence[int]], *, room: int) -> tuple[Tensor, _Reading]:
        """Logits after each prompt, and the state to go on from with up to ``room`` tokens.

        The rollouts of a problem start from one prompt: each different prompt is read once.
        """
        row_of: dict[tuple[int, ...], int] = {}
        rows = [row_of.setdefault(tuple(prompt), len(row_of)) for prompt in prompts]
        tokens, attended_BT = _pad_left(list(row_of), self._bank.pad_id, self._bank.device)
        ahead = attended_BT.new_ones(len(attended_BT), room)
        model = self._bank.causal_lm
        reading = _Reading(
            DynamicCache(config=model.config),
            torch.cat([attended_BT, ahead], dim=1),
            dtype=model.dtype,
        )
        logits = self._forward(tokens, reading)
        if len(row_of) < len(prompts):
            order = torch.tensor(rows, device=self._bank.device)
            reading.select(order)
            logits = logits[order]
        return logits, reading

    def _forward(self, tokens: Tensor, reading: _Reading) -> Tensor:
        """Logits after the last of ``tokens``, which are added to what was read."""
        past, reading.width = reading.width, reading.width + tokens.shape[1]
        attended = reading.attended_BT[:, : reading.width]
        positions = (attended.cumsum(1) - 1).clamp(min=0)[:, past:]
        # A ready mask saves transformers the work of building one; models whose layers do not all
        # see the whole past need its own.
        if past and self._full_attention:
            attended = reading.bias_B11T[..., : reading.width]
        logits: Tensor = self._bank.causal_lm(
            input_ids=tokens,
            attention_mask=attended,
            position_ids=positions,
            past_key_values=reading.cache,
            use_cache=True,
            logits_to_keep=1,
        ).logits[:, -1]
        return logits

    def _completion(self, tokens: list[int], logps: list[float]) -> Completion:
        length = next((i for i, token in enumerate(tokens, start=1) if token in self._ends), 0)
        stopped = length > 0
        length = length or len(tokens)
        return Completion(
            tuple(tokens[:length]), tuple(logps[:length]), "stop" if stopped else "length"
        )


def _out_of_memory(error: Exception) -> bool:
    """Whether an allocation failed; on a CPU torch has no type of its own for that."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "DefaultCPUAllocator" in str(
        error
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


def _pad_left(
    prompts: Sequence[Sequence[int]], pad_id: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    width = max(len(prompt) for prompt in prompts)
    tokens = [[pad_id] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    attended = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(tokens, device=device), torch.tensor(attended, device=device)
