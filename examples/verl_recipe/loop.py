"""One agent loop for all workflows: an episode is played, and every output becomes a row.

verl's V1 trainer takes a list of outputs from one episode. It gives all of them the score of the
last one, compares episodes of a problem by it, and gives all rows of an episode the same advantage.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
)
from verl.trainer.ppo.v1 import AgentLoopManagerTQ

from reference_trainer.episodes import Ask, FinishReason, Judgement, Outcome, Play, Reply
from reference_trainer.rollout.chat import decode, encode
from reference_trainer.rollout.grading import Grading
from verl_recipe.cell import cell_of


class RecipeManager(AgentLoopManagerTQ):  # type: ignore[misc]
    """verl's manager of agent loops, with the loop of this module, and a check before it begins.

    verl logs what an agent loop raises and trains on without the episode, so a mistake has to be
    found before the first one: in the recipe here, and in every worker, which may be on another
    node, what the episodes need there.

    Args:
        config: verl's configuration; which agent loop its workers run is filled in.
        args: As verl's.
        kwargs: As verl's.

    Raises:
        SettingsError: For a mistake in the section ``recipe``.
    """

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        cell_of(config)
        agent = config.actor_rollout_ref.rollout.agent
        # Absolute: workers on other nodes start in another directory.
        agent.agent_loop_config_path = str(Path(__file__).with_name("loops.yaml"))
        agent.default_agent_loop = "workflow"
        super().__init__(config, *args, **kwargs)

    async def _init_agent_loop_workers(self) -> None:
        await super()._init_agent_loop_workers()
        await asyncio.gather(
            *(worker.__ray_call__.remote(_ready, self.config) for worker in self.agent_loop_workers)
        )


def _ready(_worker: Any, config: Any) -> None:
    """Raise if episodes cannot be played in this process."""
    cell_of(config)


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What one role was asked and has answered; no output after an overflow."""

    ask: Ask
    prompt_ids: tuple[int, ...]
    output_ids: tuple[int, ...] = ()
    logps: tuple[float, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    finish_reason: FinishReason = "stop"
    seconds: float = 0.0

    @property
    def reply(self) -> Reply:
        return Reply(self.text, self.finish_reason if self.output_ids else "overflow")


class WorkflowLoop(AgentLoopBase):  # type: ignore[misc]
    """Plays the workflow of the section ``recipe`` on one row of the data."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cell = cell_of(self.config)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> list[AgentLoopOutput]:
        """Play one episode.

        Args:
            sampling_params: verl's, for every output.
            row: Columns of the data, and verl's ``index``, ``session_id`` and ``uid``.

        Returns:
            One output per role's turn, in order, with ``role``, ``slot`` and ``turn`` in
            ``extra_fields``. A prompt that is too long leaves none.
        """
        problem, task = self.cell.posed(row)
        shape = self.cell.script.shape
        spoken: list[_Spoken] = []
        with Grading(task) as grading:
            play = self.cell.script.play(problem, replace(self.cell.scene, task=grading))
            # Grading may wait for programs: never in the thread that serves the other episodes.
            step = await asyncio.to_thread(_advance, play, None)
            while not isinstance(step, Outcome):
                answers = await asyncio.gather(
                    *(self._answer(ask, sampling_params, row) for ask in step)
                )
                spoken += answers
                for answer in answers:
                    graded = shape.role(answer.ask.role).duty in ("solve", "synthesize")
                    if graded and answer.output_ids:
                        grading.begin(problem, answer.text)
                step = await asyncio.to_thread(_advance, play, [answer.reply for answer in answers])
        rows = [
            _row(answer, judgement, step)
            for answer, judgement in zip(spoken, step.judgements, strict=True)
            if answer.output_ids
        ]
        if rows:  # verl takes score and details from the last output
            rows[-1].reward_score = float(step.correct)
        return rows

    async def _answer(
        self, ask: Ask, sampling_params: dict[str, Any], row: Mapping[str, Any]
    ) -> _Spoken:
        released = self.cell.released_chat
        (prompt_ids,) = encode([ask.messages], self.tokenizer, released=released)
        if len(prompt_ids) > self.cell.scene.rules.max_prompt_tokens:
            return _Spoken(ask, prompt_ids)
        longest = int(self.rollout_config.response_length)
        begun = time.monotonic()
        output = await self.server_manager.generate(
            request_id=self._request(ask, row),
            prompt_ids=list(prompt_ids),
            sampling_params=dict(sampling_params),
        )
        seconds = time.monotonic() - begun
        if not output.token_ids:
            raise RuntimeError(
                f"the engine returned no token for {ask.role} (stop reason {output.stop_reason}): "
                "the episode is left out"
            )
        output_ids = tuple(output.token_ids)[:longest]
        logps = None if output.log_probs is None else tuple(output.log_probs)[:longest]
        (text,) = decode([output_ids], self.tokenizer, released=released)
        # verl calls a response "completed", however it ended.
        ended = output_ids[-1] == self.tokenizer.eos_token_id or len(output_ids) < longest
        finish: FinishReason = "stop" if ended else "length"
        return _Spoken(
            ask, prompt_ids, output_ids, logps, output.extra_fields, text, finish, seconds
        )

    def _request(self, ask: Ask, row: Mapping[str, Any]) -> str:
        """A name of the request; those with the same name go to the same server."""
        if getattr(self.rollout_config, "full_determinism", False):
            # verl hands the name on to vLLM, which needs another one for each request.
            place = f"{row.get('index')}-{row.get('session_id', 0)}"
            return f"{place}-{ask.turn}-{ask.role}-{ask.slot}"
        # The server that has cached the prefixes of this episode.
        return f"{row.get('uid', '')}-{row.get('session_id', 0)}"


def _advance(play: Play, replies: list[Reply] | None) -> list[Ask] | Outcome:
    """What the workflow asks next, or how the episode ended."""
    try:
        return play.send(replies)  # type: ignore[arg-type]
    except StopIteration as end:
        outcome = end.value
        assert isinstance(outcome, Outcome)
        return outcome


def _row(spoken: _Spoken, judgement: Judgement, outcome: Outcome) -> AgentLoopOutput:
    """One row of verl's batch; ``extra_fields`` says whose it is and how the workflow read it."""
    ask = spoken.ask
    return AgentLoopOutput(
        prompt_ids=list(spoken.prompt_ids),
        response_ids=list(spoken.output_ids),
        response_mask=[1] * len(spoken.output_ids),
        response_logprobs=None if spoken.logps is None else list(spoken.logps),
        num_turns=len(ask.messages) + 1,
        metrics=AgentLoopMetrics(generate_sequences=spoken.seconds),
        extra_fields={
            **spoken.extra,
            "role": ask.role,
            "slot": ask.slot,
            "turn": ask.turn,
            "finish_reason": spoken.finish_reason,
            "parse": judgement.parse.how,
            "correct": judgement.correct,
            "reward_extra_info": {"acc": float(outcome.correct)},
        },
    )
