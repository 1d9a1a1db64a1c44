"""What is sampled per iteration, and by which engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class VllmSettings:
    """How vLLM is started; docs/trainer/scale.md says what it needs from the environment.

    Attributes:
        gpu_memory: Share of the device's memory for weights and keys and values; the rest is the
            trainer's. On a CPU the environment variable ``VLLM_CPU_KVCACHE_SPACE`` says it.
        rows: Most sequences at the same time.
        block: Tokens of a block of the cache of keys and values; 0 for vLLM's own choice.
        eager: Do not compile and do not capture graphs: starts faster, samples slower.
        sleep: Give the device's memory back while the policies are trained. vLLM can do that on
            GPUs.
    """

    gpu_memory: float = 0.45
    rows: int = 256
    block: int = 0
    eager: bool = False
    sleep: bool = False


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What is sampled per iteration.

    Attributes:
        problems: Problems per iteration.
        copies: Rollouts per problem: the GRPO group size.
        temperature: Of sampling, of every log-probability, and of validation.
        max_new_tokens: Length limit of one output.
        lenient_selection: See :class:`~reference_trainer.workflows.Scene`.
        engine: What samples: the very model that is trained, or vLLM with a copy of it. With
            several processes, each has an engine of its own.
        max_rows: Most rows that the engine ``transformers`` samples at the same time, in each
            process; 0 = all of a phase. vLLM has a limit of its own, ``rollout.vllm.rows``.
        vllm: For the engine ``vllm``.
        grading_patience: Minutes that a rollout waits for the grade of one answer before the run
            ends, if answers are graded in parallel. The graders that come with the trainer have
            far shorter limits of their own, and what runs into those is wrong.
    """

    problems: int = 8
    copies: int = 8
    temperature: float = 1.0
    max_new_tokens: int = 28
    lenient_selection: bool = False
    engine: Literal["transformers", "vllm"] = "transformers"
    max_rows: int = 0
    vllm: VllmSettings = field(default_factory=VllmSettings)
    grading_patience: float = 30.0


def problems(rollout: RolloutSettings) -> list[str]:
    """What is wrong with the settings of the engines although every value has the right type."""
    wrong = []
    if rollout.engine == "vllm" and rollout.temperature > 2.0:
        wrong.append(f"rollout.temperature must be at most 2 for vLLM, got {rollout.temperature}")
    if rollout.max_rows < 0:
        wrong.append(f"rollout.max_rows must be 0 or more, got {rollout.max_rows}")
    return wrong
