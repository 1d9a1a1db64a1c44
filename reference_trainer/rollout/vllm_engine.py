"""Sampling with vLLM: one LoRA request per policy, weights handed over after every update.

vLLM keeps a copy of the base model of its own and reads adapters from disk. With several ranks each
has such an engine, which answers that rank's requests and knows nothing of the others.

It serves wrong weights without a word in some situations; how each is avoided is said where it is
done. That it worked is proved at every hand-over by :mod:`reference_trainer.adapter_check`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from socket import gethostname
from typing import Any, Literal

from roledrift_vllm import check_slots, logprob_temperature, sampled
from safetensors import SafetensorError

from reference_trainer.errors import AdapterError, RolloutError, SettingsError, StorageError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Request, Sampling
from reference_trainer.rollout.rollout_settings import VllmSettings

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Sizes of adapter slots that vLLM has; a smaller adapter fits into a larger slot."""


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
        launched: Whether this process is one of several that a launcher started.

    Raises:
        SettingsError: If vLLM is not installed, does not start with these settings, or has no slot
            for adapters of this rank.
    """

    continuous = True
    has_copy = True

    def __init__(
        self, bank: AdapterBank, served: Served, settings: VllmSettings, *, launched: bool = False
    ) -> None:
        self._bank = bank
        self._end_ids = list(served.end_ids)
        self._vllm: Any = _import("vllm")
        self._request: Any = _import("vllm.lora.request").LoRARequest
        self._dead: Any = _import("vllm.v1.engine.exceptions").EngineDeadError
        self._kinds: Any = _import("vllm.sampling_params").RequestOutputKind
        if settings.sleep:
            _refuse_sleep_without_gpu()
        arguments = _arguments(len(bank.policies), served, settings, launched=launched)
        self._llm = self._start(arguments)
        check_slots(self._llm, adapters=len(bank.policies))
        # One id per name for good: two ids under one name end vLLM's engine.
        self._ids = {policy: number for number, policy in enumerate(bank.policies, start=1)}
        self._requests: dict[str, Any] = {}
        self._adapters = tempfile.TemporaryDirectory(prefix="adapters-")
        self._syncs = 0
        self._may_sleep = settings.sleep
        self._asleep = False

    def _start(self, arguments: Mapping[str, Any]) -> Any:
        try:
            return self._vllm.LLM(**arguments)
        except (RuntimeError, ValueError, MemoryError) as error:  # memory is one of the reasons
            raise SettingsError(
                f"vLLM does not start: {error}. If it is the memory, lower rollout.vllm.gpu_memory "
                "(on a CPU VLLM_CPU_KVCACHE_SPACE), rollout.vllm.rows or rollout.max_new_tokens"
            ) from error

    def sync(self, policies: Sequence[str]) -> None:
        """Hand over the weights of ``policies``.

        Every time from a new path, because the prefix cache is keyed by path and not by weights;
        and in place, under the same id, because a new id would take the slot that must stay free.
        """
        if self._asleep:
            self._llm.wake_up()
            self._asleep = False
        self._syncs += 1
        folder = Path(self._adapters.name) / f"sync{self._syncs}"
        try:
            self._bank.save(folder, policies)
        except (OSError, SafetensorError) as error:
            raise StorageError(
                f"vLLM reads adapters from {folder} on {gethostname()}, and they cannot be written "
                f"there: {error}. Free space, or set TMPDIR; then start the run with --resume"
            ) from error
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

    def rest(self) -> None:
        """Move the weights to the host's memory and forget keys and values, if that is set."""
        if self._may_sleep and not self._asleep:
            self._llm.sleep(level=1)
            self._asleep = True

    def submit(self, requests: Mapping[int, Request]) -> None:
        """Add requests to those that are being sampled; each names its policy's adapter.

        Raises:
            AdapterError: If the weights of a policy were never handed over.
        """
        adapters = [self._asked(request.policy) for request in requests.values()]
        for (number, request), adapter in zip(requests.items(), adapters, strict=True):
            params = self._params(request.sampling, request.seed)
            logprob_temperature(self._llm, params)
            self._llm.llm_engine.add_request(
                str(number),
                {"prompt_token_ids": list(request.prompt_ids)},
                params,
                lora_request=adapter,
            )

    def collect(self) -> dict[int, Completion]:
        """Take steps of all requests together until one is finished.

        Raises:
            RolloutError: If the engine ended.
        """
        engine = self._llm.llm_engine
        finished: list[Any] = []
        while not finished and engine.has_unfinished_requests():
            try:
                finished = [output for output in engine.step() if output.finished]
            except (RuntimeError, MemoryError, self._dead) as error:
                raise RolloutError(
                    f"vLLM's engine ended while it sampled: {type(error).__name__}: {error}. If it "
                    "is the memory, lower rollout.vllm.gpu_memory or rollout.vllm.rows. A run with "
                    "checkpoints can be resumed"
                ) from error
        rows = zip(finished, sampled(finished), strict=True)
        return {
            int(output.request_id): Completion(
                row.token_ids, row.logps, "length" if row.truncated else "stop"
            )
            for output, row in rows
        }

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
            output_kind=self._kinds.FINAL_ONLY,
        )


def _arguments(
    policies: int, served: Served, settings: VllmSettings, *, launched: bool
) -> dict[str, Any]:
    rank = next((size for size in _RANKS if size >= served.rank), None)
    if rank is None:
        raise SettingsError(f"vLLM serves adapters up to rank {_RANKS[-1]}, got {served.rank}")
    more: dict[str, Any] = {"block_size": settings.block} if settings.block else {}
    if settings.sleep:
        more["enable_sleep_mode"] = True
    if launched:
        # In this process, on its device, in the launcher's process group; the engines of the ranks
        # are not parts of one, so each takes steps as it likes.
        more["distributed_executor_backend"] = "external_launcher"
    return more | {
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


def _refuse_sleep_without_gpu() -> None:
    if not _import("vllm.platforms").current_platform.is_sleep_mode_available():
        raise SettingsError(
            "rollout.vllm.sleep = true needs a device that vLLM can take its memory from, a GPU; "
            "vLLM found none here: set it to false"
        )


def _import(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise SettingsError(
            f'rollout.engine = "vllm" needs vLLM, and `import {name}` failed: {error}. Install it '
            '(on a CPU: tests/envs/vllm/requirements.txt), or set rollout.engine = "transformers"'
        ) from error
