"""What the trainer asks of a rollout engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
class Request:
    """One output that is wanted.

    Attributes:
        prompt_ids: Token ids of the prompt.
        policy: Who answers.
        sampling: Temperature and length limit.
        seed: Below 2**63. The output depends on prompt, policy, sampling and seed and on nothing it
            is batched with, up to what the batch does to the rounding of logits.
    """

    prompt_ids: Sequence[int]
    policy: str
    sampling: Sampling
    seed: int


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
    """Answers requests of several policies.

    An engine must serve the weights the policy had at the last :meth:`sync`, and must raise for a
    policy it does not know rather than serve the base model. Every rank has an engine of its own.

    Attributes:
        continuous: Whether requests join those that are being sampled. If not, those that are
            submitted together are best sampled together.
        has_copy: Whether it samples with a copy of the model. If not, the model that is trained
            must be whole while it samples.
    """

    continuous: bool
    has_copy: bool

    def sync(self, policies: Sequence[str]) -> None:
        """Take over the weights of ``policies``; called before the first and after every change."""
        ...

    def rest(self) -> None:
        """Give back memory, if the engine can, until the next :meth:`sync`."""
        ...

    def submit(self, requests: Mapping[int, Request]) -> None:
        """Take up requests.

        Args:
            requests: By a number of the caller's, none of which is still being answered.
        """
        ...

    def collect(self) -> dict[int, Completion]:
        """Sample until at least one output is finished.

        Returns:
            Number to output, of those that were finished since the last call; empty if nothing was
            submitted or all is answered.
        """
        ...


def answers(engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    """One output per request, in order, from an engine that has nothing else to do."""
    engine.submit(dict(enumerate(requests)))
    completions: dict[int, Completion] = {}
    while len(completions) < len(requests):
        completions |= engine.collect()
    return [completions[number] for number in range(len(requests))]
