"""Which rows are trained, and what they are paid: settings of experiments on single roles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reference_trainer.config import TrainSettings
from reference_trainer.episodes import Episode, Span


def is_trained(span: Span, settings: TrainSettings) -> bool:
    """Whether a span's row is in the loss: ``left_out`` and ``trained_slots``."""
    slots = settings.trained_slots.get(span.role)
    return span.role not in settings.left_out and (slots is None or span.slot < slots)


def paid(episodes: Sequence[Episode], settings: TrainSettings) -> list[Episode]:
    """``episodes`` with roles of ``own_reward`` paid for their own answers.

    A span that is no answer keeps the outcome's reward.
    """
    roles = settings.own_reward
    if not roles:
        return list(episodes)

    def own(span: Span) -> Span:
        counts = span.role in roles and span.correct is not None
        return replace(span, reward=float(bool(span.correct))) if counts else span

    return [replace(episode, spans=tuple(map(own, episode.spans))) for episode in episodes]
