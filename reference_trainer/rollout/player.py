"""Plays many episodes at the same time: all that can be asked is with the engine.

Answers are graded while others are sampled (:mod:`reference_trainer.rollout.grading`). An engine
that takes requests in while it samples gets an episode's next phase as soon as this one's outputs
are there; another gets the next phase of all episodes at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from transformers import PreTrainedTokenizerFast

from reference_trainer.episodes import Ask, Episode, Outcome, Play, Reply, Span
from reference_trainer.errors import SettingsError
from reference_trainer.ranks import ALONE, Ranks, block
from reference_trainer.rollout.chat import decode, encode
from reference_trainer.rollout.engine import Completion, Engine, Request, Sampling
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
        patience: Seconds that a grade may be waited for.
    """

    script: Script
    workflow: Workflow
    scene: Scene
    engine: Engine
    tokenizer: PreTrainedTokenizerFast
    ranks: Ranks = ALONE
    released_chat: bool = False
    patience: float = 1800.0


@dataclass(slots=True, eq=False)
class _Asked:
    """An ask and what became of it: ``completion`` is None after an overflow."""

    ask: Ask
    prompt: tuple[int, ...]
    completion: Completion | None = None
    text: str = ""


@dataclass(slots=True, eq=False)
class _Running:
    """An episode under way; the last ``new`` of what it ``asked`` are those of this phase."""

    problem: int
    posed: Problem
    copy: int
    play: Play
    asks: list[Ask]
    asked: list[_Asked]
    phase: int = 0
    open: int = 0
    outcome: Outcome | None = None

    @property
    def new(self) -> list[_Asked]:
        return self.asked[-len(self.asks) :]


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
    with nullcontext() if stage.engine.has_copy else stage.ranks.whole_model():
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
    with Grading(stage.scene.task, patience=stage.patience) as grading:
        scene = replace(stage.scene, task=grading)
        episodes = []
        for number, problem in problems:
            for copy in range(copies):
                play = stage.script.play(problem, scene)
                episodes.append(_Running(number, problem, copy, play, next(play), []))
        asking = _Asking(stage, sampling, seed)
        ready = asking.submit(episodes)
        while ready or asking.pending:
            for episode, answer in asking.collect():
                if _is_answer(stage.workflow, answer):
                    grading.begin(episode.posed, answer.text)
                if not episode.open:
                    ready.append(episode)
            able = _able(stage, ready, asking, grading)
            ready = [episode for episode in ready if episode not in able]
            for episode in able:
                _advance(episode)
            ready += asking.submit([episode for episode in able if episode.outcome is None])
    return [_finish(episode, stage.workflow) for episode in episodes]


def _able(
    stage: Stage, ready: Sequence[_Running], asking: _Asking, grading: Grading
) -> list[_Running]:
    """Episodes that go on now, in their order.

    A play may wait for grades, and the engine waits with it. So while the engine has something to
    do, only episodes whose answers are graded go on.
    """
    if asking.pending and not stage.engine.continuous:
        return []
    able = [
        episode
        for episode in ready
        if not asking.pending
        or all(
            grading.is_graded(episode.posed, asked.text)
            for asked in episode.new
            if _is_answer(stage.workflow, asked)
        )
    ]
    return sorted(able, key=lambda episode: (episode.problem, episode.copy))


def _is_answer(workflow: Workflow, asked: _Asked) -> bool:
    """Whether the role's duty is to answer the problem."""
    return workflow.role(asked.ask.role).duty in ("solve", "synthesize")


class _Asking:
    """What the episodes of one process ask the engine.

    Args:
        stage: Its engine has nothing else to do.
        sampling: Temperature and length limit.
        seed: Of these episodes.

    Attributes:
        pending: Number of a request to the episode and the ask that wait for its output.
    """

    def __init__(self, stage: Stage, sampling: Sampling, seed: int) -> None:
        self.pending: dict[int, tuple[_Running, _Asked]] = {}
        self._stage = stage
        self._sampling = sampling
        self._seed = seed
        self._next = 0

    def submit(self, episodes: Sequence[_Running]) -> list[_Running]:
        """Ask the engine what the episodes ask.

        Returns:
            Those that need not wait, because all their prompts are too long.
        """
        if not episodes:  # the tokenizer refuses an empty list
            return []
        stage = self._stage
        conversations = [ask.messages for episode in episodes for ask in episode.asks]
        prompts = iter(encode(conversations, stage.tokenizer, released=stage.released_chat))
        requests: dict[int, Request] = {}
        for episode in episodes:
            for place, ask in enumerate(episode.asks):
                asked = _Asked(ask, next(prompts))
                episode.asked.append(asked)
                if len(asked.prompt) > stage.scene.rules.max_prompt_tokens:
                    continue
                names = (episode.problem, episode.copy, episode.phase, place)
                requests[self._next] = Request(
                    asked.prompt,
                    stage.workflow.policy_of(ask.role),
                    self._sampling,
                    derive(self._seed, *names),
                )
                self.pending[self._next] = episode, asked
                self._next += 1
                episode.open += 1
            episode.phase += 1
        stage.engine.submit(requests)
        return [episode for episode in episodes if not episode.open]

    def collect(self) -> Iterator[tuple[_Running, _Asked]]:
        """Wait for outputs; each with its episode, as if the others were still to come."""
        stage = self._stage
        completions = stage.engine.collect() if self.pending else {}
        outputs = [completion.output_ids for completion in completions.values()]
        texts = decode(outputs, stage.tokenizer, released=stage.released_chat)
        for (number, completion), text in zip(completions.items(), texts, strict=True):
            episode, asked = self.pending.pop(number)
            asked.completion, asked.text = completion, text
            episode.open -= 1
            yield episode, asked


def _advance(episode: _Running) -> None:
    """Give the play its replies: it asks again, or ends."""
    replies = [
        Reply(asked.text, asked.completion.finish_reason if asked.completion else "overflow")
        for asked in episode.new
    ]
    try:
        episode.asks = episode.play.send(replies)
    except StopIteration as end:
        episode.outcome = end.value


def _finish(episode: _Running, workflow: Workflow) -> Episode:
    outcome = episode.outcome
    assert outcome is not None
    answered = [
        (asked, asked.completion, judgement)
        for asked, judgement in zip(episode.asked, outcome.judgements, strict=True)
        if asked.completion is not None
    ]
    spans = tuple(
        Span(
            problem=episode.problem,
            copy=episode.copy,
            role=asked.ask.role,
            slot=asked.ask.slot,
            turn=asked.ask.turn,
            policy=workflow.policy_of(asked.ask.role),
            prompt_ids=asked.prompt,
            output_ids=completion.output_ids,
            logp_rollout=completion.logps,
            finish_reason=completion.finish_reason,
            text=asked.text,
            parse=judgement.parse,
            correct=judgement.correct,
            reward=float(outcome.correct),
        )
        for asked, completion, judgement in answered
    )
    overflowed = tuple(asked.ask.role for asked in episode.asked if asked.completion is None)
    return Episode(episode.problem, episode.copy, outcome.correct, spans, overflowed)
