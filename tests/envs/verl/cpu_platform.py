"""The CPU as a platform of verl, in the way that verl lets plugins bring one.

With it, and ``VERL_ENGINE_DEVICE=cuda`` to have the engine that GPUs get, verl's own workers run
here: the real loss, the real FSDP engine, the real optimizer.
"""

import os
from typing import Any

import torch
from verl.plugin.platform.platform_cuda import PlatformCUDA
from verl.plugin.platform.platform_manager import PlatformRegistry


class Device:
    """``torch.cpu`` with what verl also asks ``torch.cuda`` for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("max_memory", "memory_")):
            return lambda *_, **__: 0
        return getattr(torch.cpu, name)

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        return 1, 1

    def get_device_name(self, *_: Any) -> str:
        return "cpu"

    def current_device(self) -> str:
        return "cpu"

    def set_rng_state(self, state: torch.Tensor) -> None:
        torch.set_rng_state(state)

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def ipc_collect(self) -> None:
        """Nothing is shared."""


@PlatformRegistry.register(platform="cpu")
class PlatformCPU(PlatformCUDA):
    device_name = "cpu"
    vendor_name = "none"
    device_module = Device()  # type: ignore[assignment]

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"

    def set_device(self, device_index: Any) -> None:
        """There is one."""

    def synchronize(self, device_index: Any = None) -> None:
        """Nothing runs ahead."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed

    def set_allocator_settings(self, settings: str) -> None:
        """There are none."""

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def communication_backend_name(self) -> str:
        return "gloo"

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {"num_cpus": 0}


os.environ.update({"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda"})
_others = os.environ.get("VERL_USE_EXTERNAL_MODULES", "")
if __name__ not in _others.split(","):  # actors of verl's own classes import nothing of ours
    os.environ["VERL_USE_EXTERNAL_MODULES"] = ",".join(filter(None, (_others, __name__)))
