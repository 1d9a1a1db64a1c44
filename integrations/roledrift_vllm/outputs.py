"""What vLLM returns, as token columns with log-probabilities at a known temperature.

Shape suffixes: B outputs, T token positions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from roledrift.errors import CaptureError

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "top_p": (1.0,),
    "top_k": (0, -1),
    "min_p": (0.0,),
    "repetition_penalty": (1.0,),
    "presence_penalty": (0.0,),
    "frequency_penalty": (0.0,),
    "logit_bias": (None,),
    "allowed_token_ids": (None,),
    "bad_words": (None, []),
    "min_tokens": (0,),
}
"""Sampling parameters that change the distribution, with the values that leave it alone."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """One completion.

    Attributes:
        token_ids: Its tokens. A token that ended it is the last of them; a stop string is not.
        logps: What vLLM reports as log-probability of each token, in nats.
        truncated: True if the length limit cut it.
        adapter: Name of the adapter that was asked for, None for the base model.
    """

    token_ids: tuple[int, ...]
    logps: tuple[float, ...]
    truncated: bool
    adapter: str | None


@dataclass(frozen=True, slots=True, eq=False)
class RolloutColumns:
    """Completions, padded on the right, as ``RoleBatch`` takes them.

    Attributes:
        token_BT: Tokens, 0 at padding.
        mask_BT: True at tokens.
        logp_BT: Log-probabilities in nats, 0 at padding; float32.
        truncated_B: True where the length limit cut the output.
        temperature: Of the log-probabilities.
    """

    token_BT: Tensor
    mask_BT: Tensor
    logp_BT: Tensor
    truncated_B: Tensor
    temperature: float


def sampled(outputs: Iterable[Any]) -> list[Sampled]:
    """Completions of vLLM's ``RequestOutput``s, in order; all ``n`` of a request in a row.

    Raises:
        CaptureError: If log-probabilities are missing, not finite, or a request did not finish.
    """
    result = []
    for request in outputs:
        asked = request.lora_request
        adapter = None if asked is None else str(asked.lora_name)
        for completion in request.outputs:
            if completion.finish_reason not in ("stop", "length"):
                raise CaptureError(
                    f"request {request.request_id} ended with {completion.finish_reason!r}, not "
                    "with 'stop' or 'length': collect outputs once they are finished"
                )
            ids = tuple(int(token_id) for token_id in completion.token_ids)
            logps = _logps(ids, completion.logprobs, request.request_id)
            result.append(Sampled(ids, logps, completion.finish_reason == "length", adapter))
    return result


def _logps(ids: Sequence[int], positions: Any, request: str) -> tuple[float, ...]:
    if positions is None or len(positions) != len(ids):
        got = "none" if positions is None else f"{len(positions)} for {len(ids)} tokens"
        raise CaptureError(
            f"request {request} has log-probabilities: {got}; sample with SamplingParams("
            "logprobs=0), which returns those of the sampled tokens"
        )
    logps = tuple(
        float(alternatives[token].logprob)
        for token, alternatives in zip(ids, positions, strict=True)
    )
    if not all(map(math.isfinite, logps)):
        raise CaptureError(f"request {request} has log-probabilities that are not finite")
    return logps


def logprob_temperature(llm: Any, params: Any) -> float:
    """Temperature of the log-probabilities that ``llm`` returns for ``params``.

    vLLM's default ``logprobs_mode="raw_logprobs"`` reports them at temperature 1 whatever was
    sampled at; ``"processed_logprobs"`` reports those of the distribution that was sampled from.

    Args:
        llm: A ``vllm.LLM``.
        params: The ``SamplingParams`` of the requests.

    Raises:
        CaptureError: If no temperature describes them: logits instead of log-probabilities, greedy
            sampling, or a distribution that was cut or shifted (``top_p``, penalties, ...), which a
            trainer's log-probabilities are not of.
    """
    mode = str(llm.llm_engine.vllm_config.model_config.logprobs_mode)
    if mode == "raw_logprobs":
        return 1.0
    if mode != "processed_logprobs":
        raise CaptureError(
            f"logprobs_mode is {mode!r}, which reports no log-probabilities; start the engine with "
            "logprobs_mode='processed_logprobs'"
        )
    changed = [
        f"{name}={getattr(params, name)!r}"
        for name, neutral in _NEUTRAL.items()
        if getattr(params, name, neutral[0]) not in neutral
    ]
    if changed:
        raise CaptureError(
            f"log-probabilities are those after {', '.join(changed)}; a trainer's are of the whole "
            "distribution. Sample without, or use logprobs_mode='raw_logprobs'."
        )
    if not params.temperature > 0:
        raise CaptureError(f"temperature is {params.temperature}: greedy outputs have no policy")
    return float(params.temperature)


def rollout_columns(
    rows: Sequence[Sampled], *, temperature: float, device: torch.device | str = "cpu"
) -> RolloutColumns:
    """Pad completions.

    Args:
        rows: From :func:`sampled`; at least one with a token.
        temperature: From :func:`logprob_temperature`.
        device: Where the trainer's log-probabilities are.

    Raises:
        CaptureError: If there is no token at all.
    """
    width = max((len(row.token_ids) for row in rows), default=0)
    if width == 0:
        raise CaptureError("there is no completion with a token")

    def padded(values: Sequence[Sequence[Any]], dtype: torch.dtype) -> Tensor:
        full = [[*value, *([0] * (width - len(value)))] for value in values]
        return torch.tensor(full, dtype=dtype, device=device)

    return RolloutColumns(
        token_BT=padded([row.token_ids for row in rows], torch.int64),
        mask_BT=padded([[1] * len(row.token_ids) for row in rows], torch.bool),
        logp_BT=padded([row.logps for row in rows], torch.float32),
        truncated_B=torch.tensor([row.truncated for row in rows], device=device),
        temperature=temperature,
    )
