"""What the trainer asks of a rollout engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from reference_trainer.episodes import FinishReason


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Attributes:
        temperature: Divides the logits; greater than 0.
        max_new_tokens: Length limit of one output.
    """

    temperature: float
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled output.

    Attributes:
        output_ids: At least one token; includes the end token if the output stopped.
        logps: Log-probability of each token at the sampling temperature, in nats.
        finish_reason: ``length`` if the limit cut it.
    """

    output_ids: tuple[int, ...]
    logps: tuple[float, ...]
    finish_reason: FinishReason


class Engine(Protocol):
    """Samples from one policy at a time.

    An engine must serve the weights the policy had at the last :meth:`sync`, and must raise for a
    policy it does not know rather than serve the base model.
    """

    def sync(self, policies: Sequence[str]) -> None:
        """Take over the weights of ``policies``; called before the first and after every change."""
        ...

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        policy: str,
        sampling: Sampling,
        seeds: Sequence[int],
    ) -> list[Completion]:
        """One completion per prompt, in order.

        Args:
            prompts: Token ids.
            policy: Who answers.
            sampling: Temperature and length limit.
            seeds: One per prompt, below 2**63. A completion depends on its own prompt and seed and
                on nothing it is batched with, up to what the batch does to the rounding of logits.
        """
        ...
