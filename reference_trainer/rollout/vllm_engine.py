"""Sampling with vLLM: one LoRA request per policy, weights handed over after every update.

vLLM keeps a copy of the base model of its own and reads adapters from disk. It serves wrong weights
without a word in some situations; how each is avoided is said where it is done. That it worked is
proved at every hand-over by :mod:`reference_trainer.adapter_check`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from roledrift_vllm import check_slots, logprob_temperature, sampled

from reference_trainer.errors import AdapterError, SettingsError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Sampling

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Sizes of adapter slots that vLLM has; a smaller adapter fits into a larger slot."""


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM is started. What it needs from the environment is in docs/trainer/models.md.

    Attributes:
        gpu_memory: Share of the device's memory for weights and keys and values; the rest is the
            trainer's. On a CPU the environment variable ``VLLM_CPU_KVCACHE_SPACE`` says it.
        rows: Most sequences at the same time.
        block: Tokens of a block of the cache of keys and values; 0 for vLLM's own choice.
        eager: Do not compile and do not capture graphs: starts faster, samples slower.
    """

    gpu_memory: float = 0.45
    rows: int = 256
    block: int = 0
    eager: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """What an engine has to serve.

    Attributes:
        folder: Of the base model.
        dtype: Of its weights and of the computation.
        end_ids: Tokens that end an output.
        max_tokens: Longest prompt and output together.
        rank: Of every adapter.
    """

    folder: Path
    dtype: Literal["float32", "bfloat16"]
    end_ids: tuple[int, ...]
    max_tokens: int
    rank: int


class VllmEngine:
    """See :class:`~reference_trainer.rollout.engine.Engine`.

    Args:
        bank: Its adapters are served.
        served: The base model and its limits.
        settings: Of vLLM.

    Raises:
        SettingsError: If vLLM is not installed or has no slot for adapters of this rank.
    """

    def __init__(self, bank: AdapterBank, served: Served, settings: VllmSettings) -> None:
        self._bank = bank
        self._end_ids = list(served.end_ids)
        self._vllm: Any = _import("vllm")
        self._request: Any = _import("vllm.lora.request").LoRARequest
        self._llm = self._vllm.LLM(**_arguments(len(bank.policies), served, settings))
        check_slots(self._llm, adapters=len(bank.policies))
        # One id per name for good: two ids under one name end vLLM's engine.
        self._ids = {policy: number for number, policy in enumerate(bank.policies, start=1)}
        self._requests: dict[str, Any] = {}
        self._adapters = tempfile.TemporaryDirectory(prefix="adapters-")
        self._syncs = 0

    def sync(self, policies: Sequence[str]) -> None:
        """Hand over the weights of ``policies``.

        Every time from a new path, because the prefix cache is keyed by path and not by weights;
        and in place, under the same id, because a new id would take the slot that must stay free.
        """
        self._syncs += 1
        folder = Path(self._adapters.name) / f"sync{self._syncs}"
        self._bank.save(folder, policies)
        for policy in policies:
            path = str(folder / policy)
            number = self._ids[policy]
            # Only this call reloads: a request that says so reads the files again for every batch.
            self._llm.llm_engine.add_lora(
                self._request(policy, number, path, load_inplace=policy in self._requests)
            )
            old = self._requests.get(policy)
            self._requests[policy] = self._request(policy, number, path)
            if old is not None:
                shutil.rmtree(old.lora_path)
        self._llm.reset_prefix_cache()

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        policy: str,
        sampling: Sampling,
        seeds: Sequence[int],
    ) -> list[Completion]:
        """Sample one completion per prompt; see :class:`~reference_trainer.rollout.engine.Engine`.

        Raises:
            AdapterError: If the weights of ``policy`` were never handed over.
        """
        if not prompts:
            return []
        request = self._asked(policy)
        params = [self._params(sampling, seed) for seed in seeds]
        logprob_temperature(self._llm, params[0])
        outputs = self._llm.generate(
            [{"prompt_token_ids": list(prompt)} for prompt in prompts],
            params,
            lora_request=[request] * len(prompts),
            use_tqdm=False,
        )
        return [
            Completion(row.token_ids, row.logps, "length" if row.truncated else "stop")
            for row in sampled(outputs)
        ]

    def _asked(self, policy: str) -> Any:
        if policy not in self._ids:
            raise SettingsError(f"no policy {policy!r} in the bank; it holds {list(self._ids)}")
        if policy not in self._requests:
            raise AdapterError(
                f"the weights of policy {policy!r} were never handed to vLLM: call sync first"
            )
        return self._requests[policy]

    def _params(self, sampling: Sampling, seed: int) -> Any:
        return self._vllm.SamplingParams(
            temperature=sampling.temperature,
            max_tokens=sampling.max_new_tokens,
            seed=seed,
            logprobs=0,  # of the sampled token alone
            stop_token_ids=self._end_ids,
            detokenize=False,
        )


def _arguments(policies: int, served: Served, settings: VllmSettings) -> dict[str, Any]:
    rank = next((size for size in _RANKS if size >= served.rank), None)
    if rank is None:
        raise SettingsError(f"vLLM serves adapters up to rank {_RANKS[-1]}, got {served.rank}")
    own_block = {"block_size": settings.block} if settings.block else {}
    return own_block | {
        "model": str(served.folder),
        "skip_tokenizer_init": True,
        "dtype": served.dtype,
        "max_model_len": served.max_tokens,
        "max_num_seqs": settings.rows,
        "gpu_memory_utilization": settings.gpu_memory,
        "enforce_eager": settings.eager,
        "enable_lora": True,
        # One slot more than adapters: rows without one may get the last slot's (CPU kernels).
        "max_loras": policies + 1,
        "max_lora_rank": rank,
        # Of the distribution that is sampled from; the default is that at temperature 1.
        "logprobs_mode": "processed_logprobs",
        # Not the sampling parameters that models bring along: top-k would cut the distribution.
        "generation_config": "vllm",
        "disable_log_stats": True,
    }


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise SettingsError(
            f'rollout.engine = "vllm" needs vLLM, and `import {name}` failed: {error}. Install it '
            '(on a CPU: tests/envs/vllm/requirements.txt), or set rollout.engine = "transformers"'
        ) from error
