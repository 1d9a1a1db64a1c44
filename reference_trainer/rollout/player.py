"""Plays many episodes in lockstep: all asks of a phase that go to one policy share one batch.

Answers are graded while the next phase is sampled (:mod:`reference_trainer.rollout.grading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerFast

from reference_trainer.episodes import Ask, Episode, Outcome, Play, Reply, Span
from reference_trainer.errors import SettingsError
from reference_trainer.ranks import ALONE, Ranks, block
from reference_trainer.rollout.chat import decode, encode
from reference_trainer.rollout.engine import Completion, Engine, Sampling
from reference_trainer.rollout.grading import Grading
from reference_trainer.seeds import derive
from reference_trainer.tasks import Problem
from reference_trainer.workflows import Scene, Script
from roledrift import Workflow


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything an episode needs.

    Attributes:
        script: The workflow's play.
        workflow: The workflow's shape with the routing of this run.
        scene: Task and prompts.
        engine: Samples outputs.
        tokenizer: Of the policies' common base model.
        ranks: Processes that share the episodes.
        released_chat: Conversations are rendered and replies read as in the paper's code, see
            :mod:`reference_trainer.rollout.chat`.
    """

    script: Script
    workflow: Workflow
    scene: Scene
    engine: Engine
    tokenizer: PreTrainedTokenizerFast
    ranks: Ranks = ALONE
    released_chat: bool = False


Answered = tuple[Ask, tuple[int, ...], Completion | None, str]
"""An ask, its prompt, and what was sampled: None after an overflow; with its text."""


@dataclass(slots=True)
class _Running:
    """An episode under way; ``new`` are the answers to ``asks``, also the last of ``done``."""

    problem: int
    posed: Problem
    copy: int
    play: Play
    asks: list[Ask]
    done: list[Answered]
    new: list[Answered]
    outcome: Outcome | None = None


def play_episodes(
    stage: Stage,
    problems: Sequence[tuple[int, Problem]],
    *,
    copies: int,
    sampling: Sampling,
    seed: int,
) -> list[Episode]:
    """Play every problem ``copies`` times.

    Every output has random numbers of its own, named by ``seed``, the problem's number, the copy,
    the phase and the place within the phase: which other episodes are played along with it, and in
    which process, changes nothing. Of several ranks each plays its part of the problems and gets
    the episodes of all.

    Args:
        stage: Workflow, task, engine.
        problems: Problem numbers with their problems.
        copies: Rollouts per problem (the GRPO group size).
        sampling: Temperature and length limit.
        seed: Of these episodes.

    Returns:
        Episodes, the copies of a problem next to each other. Rewards are the broadcast outcome: 1
        for every span of a correct episode, 0 otherwise. An ask whose prompt is too long leaves no
        span; the episode names its role.

    Raises:
        SettingsError: If no prompt at all is short enough.
    """
    own = block(problems, stage.ranks)
    with stage.ranks.whole_model():
        played = _play(stage, own, copies=copies, sampling=sampling, seed=seed)
    finished = stage.ranks.gather(played)
    if not any(episode.spans for episode in finished):
        raise SettingsError(
            f"every prompt is longer than rules.max_prompt_tokens = "
            f"{stage.scene.rules.max_prompt_tokens}: raise it"
        )
    return finished


def _play(
    stage: Stage,
    problems: Sequence[tuple[int, Problem]],
    *,
    copies: int,
    sampling: Sampling,
    seed: int,
) -> list[Episode]:
    """The episodes that this process plays."""
    with Grading(stage.scene.task) as grading:
        scene = replace(stage.scene, task=grading)
        episodes = []
        for number, problem in problems:
            for copy in range(copies):
                play = stage.script.play(problem, scene)
                episodes.append(_Running(number, problem, copy, play, next(play), [], []))
        phase = 0
        while waiting := [episode for episode in episodes if episode.outcome is None]:
            seeds = [
                derive(seed, episode.problem, episode.copy, phase, place)
                for episode in waiting
                for place in range(len(episode.asks))
            ]
            _answer(stage, waiting, sampling=sampling, seeds=seeds)
            _begin_grading(stage.workflow, waiting, grading)
            for episode in waiting:
                _advance(episode)
            phase += 1
    return [_finish(episode, stage.workflow) for episode in episodes]


def _answer(
    stage: Stage, waiting: list[_Running], *, sampling: Sampling, seeds: Sequence[int]
) -> None:
    """Answer the pending asks of all waiting episodes."""
    asks = [ask for episode in waiting for ask in episode.asks]
    conversations = [ask.messages for ask in asks]
    prompts = encode(conversations, stage.tokenizer, released=stage.released_chat)
    fits = [len(prompt) <= stage.scene.rules.max_prompt_tokens for prompt in prompts]
    completions: dict[int, Completion] = {}
    for policy in dict.fromkeys(stage.workflow.policy_of(ask.role) for ask in asks):
        rows = [
            i
            for i, ask in enumerate(asks)
            if fits[i] and stage.workflow.policy_of(ask.role) == policy
        ]
        drawn = stage.engine.generate(
            [prompts[i] for i in rows],
            policy=policy,
            sampling=sampling,
            seeds=[seeds[i] for i in rows],
        )
        completions |= dict(zip(rows, drawn, strict=True))
    rows = list(completions)
    outputs = [completions[i].output_ids for i in rows]
    decoded = decode(outputs, stage.tokenizer, released=stage.released_chat)
    texts = dict(zip(rows, decoded, strict=True))
    answered = iter(
        (ask, prompts[i], completions.get(i), texts.get(i, "")) for i, ask in enumerate(asks)
    )
    for episode in waiting:
        episode.new = [next(answered) for _ in episode.asks]
        episode.done += episode.new


def _begin_grading(workflow: Workflow, waiting: list[_Running], grading: Grading) -> None:
    """Start to grade the new outputs of all roles whose duty is to answer the problem."""
    for episode in waiting:
        for ask, _, _, text in episode.new:
            if workflow.role(ask.role).duty in ("solve", "synthesize"):
                grading.begin(episode.posed, text)


def _advance(episode: _Running) -> None:
    """Give the play its replies: it asks again, or ends."""
    replies = [
        Reply(text, completion.finish_reason if completion else "overflow")
        for _, _, completion, text in episode.new
    ]
    try:
        episode.asks = episode.play.send(replies)
    except StopIteration as end:
        episode.outcome = end.value


def _finish(episode: _Running, workflow: Workflow) -> Episode:
    outcome = episode.outcome
    assert outcome is not None
    spans = tuple(
        Span(
            problem=episode.problem,
            copy=episode.copy,
            role=ask.role,
            slot=ask.slot,
            turn=ask.turn,
            policy=workflow.policy_of(ask.role),
            prompt_ids=prompt,
            output_ids=completion.output_ids,
            logp_rollout=completion.logps,
            finish_reason=completion.finish_reason,
            text=text,
            parse=judgement.parse,
            correct=judgement.correct,
            reward=float(outcome.correct),
        )
        for (ask, prompt, completion, text), judgement in zip(
            episode.done, outcome.judgements, strict=True
        )
        if completion is not None
    )
    overflowed = tuple(ask.role for ask, _, completion, _ in episode.done if completion is None)
    return Episode(episode.problem, episode.copy, outcome.correct, spans, overflowed)
