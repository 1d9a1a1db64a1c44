"""What a plan assumes: the device, its speed, and the lengths of rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reference_trainer.errors import SettingsError

GIB = 1 << 30

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:GB|GiB)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device, and the assumptions that turn work into time.

    The speeds are those of an H100 SXM; its data sheet has them as 989 dense bfloat16 TFLOP/s and
    3.35 TB/s.

    Attributes:
        memory: Bytes.
        count: Devices that one run has.
        free: Share of the memory that stays free: CUDA's context, what NCCL holds, fragmentation.
        tflops: Most operations per second in the precision of the base model, in units of 1e12.
        utilisation: Share of them that training reaches (model FLOPs utilisation).
        bandwidth: Most bytes per second of the memory, in units of 1e12.
        reading: Share of that which sampling reaches.
        tokens_per_second: Output tokens per second that the engine of one device samples; None to
            estimate it from the bandwidth.
    """

    memory: int
    count: int = 1
    free: float = 0.06
    tflops: float = 989.0
    utilisation: float = 0.1
    bandwidth: float = 3.35
    reading: float = 0.4
    tokens_per_second: float | None = None

    @property
    def usable(self) -> int:
        """Bytes that a run may take."""
        return int(self.memory * (1 - self.free))


@dataclass(frozen=True, slots=True)
class Lengths:
    """Mean lengths that a plan assumes; rows are never longer than the run's limits.

    Attributes:
        question: Tokens of a prompt without what it quotes of earlier outputs.
        output: Share of ``rollout.max_new_tokens`` that an output has.
    """

    question: int = 300
    output: float = 0.3


def memory_of(text: str) -> int:
    """Bytes of a device's memory: ``"80GB"``, by which vendors mean GiB, as ``"80GiB"`` does.

    Raises:
        SettingsError: If it is not such a size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise SettingsError(
            f"--gpu {text!r} is not the size of a device's memory: write it with its unit, "
            "such as --gpu 80GB"
        )
    return int(float(match[1]) * GIB)


def problems(gpu: Gpu, lengths: Lengths) -> list[str]:
    """What is wrong with the assumptions, in the words of the command line."""
    least = {"--gpus": gpu.count, "--question-tokens": lengths.question}
    wrong = [
        f"{name} must be at least 1, got {value}" for name, value in least.items() if value < 1
    ]
    shares = {
        "--mfu": gpu.utilisation,
        "--reading": gpu.reading,
        "--output-share": lengths.output,
    }
    wrong += [
        f"{name} is a share and must be above 0 and at most 1, got {value:g}"
        for name, value in shares.items()
        if not 0 < value <= 1
    ]
    positive = {"--tflops": gpu.tflops, "--bandwidth": gpu.bandwidth}
    if gpu.tokens_per_second is not None:
        positive["--tokens-per-second"] = gpu.tokens_per_second
    wrong += [
        f"{name} must be above 0, got {value:g}" for name, value in positive.items() if value <= 0
    ]
    return wrong
