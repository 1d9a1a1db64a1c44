"""What a rollout produces: episodes made of spans; and what those are made from."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Literal

FinishReason = Literal["stop", "length"]
How = Literal["tag", "fallback", "failed"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    speaker: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A workflow's request for one output of one role."""

    role: str
    slot: int
    turn: int
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the workflow gets back for an :class:`Ask`.

    Attributes:
        text: The output, empty after an overflow.
        finish_reason: ``overflow`` if the prompt was too long to be sampled from; such an ask
            leaves no span.
    """

    text: str
    finish_reason: FinishReason | Literal["overflow"]


@dataclass(frozen=True, slots=True)
class Parse:
    """What a parser read from a text, and how.

    Attributes:
        how: ``tag`` = the demanded form was there; ``fallback`` = something usable was found
            elsewhere; ``failed`` = nothing usable.
        value: What was read; None if it failed.
    """

    how: How
    value: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """A workflow's view of one of its spans.

    Attributes:
        parse: How the span's text was read.
        correct: Whether this span's own result was right; None for a role whose output is not an
            answer.
    """

    parse: Parse
    correct: bool | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """End of an episode.

    Attributes:
        correct: Whether the workflow's final answer was right.
        judgements: One per ask, in order.
    """

    correct: bool
    judgements: tuple[Judgement, ...]


Play = Generator[list[Ask], list[Reply], Outcome]
"""One episode: yields the asks of a phase, receives their replies in order, returns the outcome."""


@dataclass(frozen=True, slots=True)
class Span:
    """One trainable output of one role.

    Attributes:
        problem: Number of the problem within its split.
        copy: Which of the problem's rollouts this is part of, from 0.
        role: Role name.
        slot: Copy of the role within the episode, from 0.
        turn: Turn within the episode, from 0.
        policy: Policy that produced it.
        prompt_ids: Tokens the policy saw.
        output_ids: Tokens it produced, including the end token if it stopped.
        logp_rollout: Log-probability of each output token at the sampling temperature, in nats.
        finish_reason: ``stop`` or ``length``.
        text: Decoded output without the end token.
        parse: How the workflow read the text.
        correct: Whether the span's own result was right, None where that makes no sense.
        reward: What the advantage is computed from.
        advantage: Filled in by the trainer, 0 before.
    """

    problem: int
    copy: int
    role: str
    slot: int
    turn: int
    policy: str
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    logp_rollout: tuple[float, ...]
    finish_reason: FinishReason
    text: str
    parse: Parse
    correct: bool | None
    reward: float
    advantage: float = 0.0


@dataclass(frozen=True, slots=True)
class Episode:
    """One rollout of a workflow on one problem.

    Attributes:
        problem: Number of the problem within its split.
        copy: Which of the problem's rollouts this is, from 0.
        correct: Whether the final answer was right.
        spans: In the order in which they were asked for.
        overflowed: Role of every ask whose prompt was too long to be sampled from.
    """

    problem: int
    copy: int
    correct: bool
    spans: tuple[Span, ...]
    overflowed: tuple[str, ...] = ()

    @property
    def truncated(self) -> tuple[str, ...]:
        """Role of every span that the length limit cut."""
        return tuple(span.role for span in self.spans if span.finish_reason == "length")
