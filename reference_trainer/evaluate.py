"""Accuracy on fixed validation problems, sampled at the rollout temperature.

Greedy decoding would hide what RL improves: a tiny model can be right nearly always when it takes
its best guess and wrong half of the time when it samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from reference_trainer.config import Config
from reference_trainer.episodes import Episode, Span
from reference_trainer.rollout.engine import Sampling
from reference_trainer.rollout.player import Stage, play_episodes
from reference_trainer.seeds import derive

_ANSWERS = ("\\boxed", "```")
"""What an answer begins with, in either task."""


@dataclass(frozen=True, slots=True)
class RoleSummary:
    """One role's outputs in some episodes.

    Attributes:
        spans: Number of outputs.
        accuracy: Share whose own result was right; None for a role whose outputs are not answers.
        tokens: Mean number of output tokens.
        truncated: Share cut by the length limit.
        tagged: Share in the demanded form.
        fallback: Share that could be read although the form was missing.
        failed: Share that could not be read at all.
        terse: Share that begins with the answer, without any work before it.
        per_episode: Mean number of outputs in episodes that have one: turns, votes, workers.
        same: Share of the most frequent thing read, among outputs that were read: 1 for a judge
            that always approves or a selector that always takes the same candidate.
    """

    spans: int
    accuracy: float | None
    tokens: float
    truncated: float
    tagged: float
    fallback: float
    failed: float
    terse: float
    per_episode: float
    same: float | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Result of a validation.

    Attributes:
        accuracy: Share of problems whose final answer was right.
        problems: Number of problems.
        roles: Per role, in registry order.
        overflowed: Share of episodes in which a prompt was too long to be sampled from.
        solved: ``"1"`` or ``"0"`` per problem, in the order of their numbers.
    """

    accuracy: float
    problems: int
    roles: dict[str, RoleSummary]
    overflowed: float
    solved: str = ""


def evaluate(stage: Stage, config: Config, *, step: int) -> Evaluation:
    """Play every validation problem once; see :func:`play_validation`."""
    return evaluation_of(play_validation(stage, config, step=step), stage)


def play_validation(stage: Stage, config: Config, *, step: int, copies: int = 1) -> list[Episode]:
    """``copies`` episodes per validation problem.

    The random numbers depend on ``step``, not on what was sampled before.
    """
    count = config.validation.problems
    problems = [(i, stage.scene.task.problem("validation", i)) for i in range(count)]
    return play_episodes(
        stage,
        problems,
        copies=copies,
        sampling=Sampling(config.rollout.temperature, config.rollout.max_new_tokens),
        seed=derive(config.seed, "validation", step),
    )


def evaluation_of(episodes: Sequence[Episode], stage: Stage) -> Evaluation:
    """What a validation's episodes come to."""
    return Evaluation(
        fmean(episode.correct for episode in episodes),
        len(episodes),
        summarise(episodes, stage.workflow.role_names),
        fmean(bool(episode.overflowed) for episode in episodes),
        "".join("1" if episode.correct else "0" for episode in episodes),
    )


def summarise(episodes: Sequence[Episode], roles: Sequence[str]) -> dict[str, RoleSummary]:
    """Summary per role; roles without outputs are left out."""
    spans: dict[str, list[Span]] = {role: [] for role in roles}
    for episode in episodes:
        for span in episode.spans:
            spans[span.role].append(span)
    return {role: _summary(own) for role, own in spans.items() if own}


def _summary(spans: Sequence[Span]) -> RoleSummary:
    judged = [span.correct for span in spans if span.correct is not None]
    read = Counter(span.parse.value for span in spans if span.parse.value is not None)
    episodes = {(span.problem, span.copy) for span in spans}
    return RoleSummary(
        spans=len(spans),
        accuracy=fmean(judged) if judged else None,
        tokens=fmean(len(span.output_ids) for span in spans),
        truncated=fmean(span.finish_reason == "length" for span in spans),
        tagged=fmean(span.parse.how == "tag" for span in spans),
        fallback=fmean(span.parse.how == "fallback" for span in spans),
        failed=fmean(span.parse.how == "failed" for span in spans),
        terse=fmean(span.text.lstrip().startswith(_ANSWERS) for span in spans),
        per_episode=len(spans) / len(episodes),
        same=max(read.values()) / read.total() if read else None,
    )
