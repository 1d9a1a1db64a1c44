"""Episodes as rllm and its forks write them: ``{id, task, trajectories: [{name, steps}]}``.

Two dumps have this core: the evaluation dump of the paper's code (with ``model_output``: token
counts and the finish reason) and rllm's training-time episode log (without).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from roledrift.ingest.form import Job
from roledrift.ingest.grade import duty_of
from roledrift.ingest.rows import SpanRow
from roledrift.ingest.values import content, integer, number, prompt_of, rows, section, text
from roledrift_importers.regrading import regrade, truth_of


@dataclass(slots=True)
class Broadcast:
    """Whether rewards are the same for all roles of an episode.

    Attributes:
        episodes: Episodes with several roles and rewards.
        equal: Those in which all rewards are equal.
        wrong: Episodes whose last answer, graded again, disagrees with ``is_correct``.
    """

    episodes: int = 0
    equal: int = 0
    graded: int = 0
    wrong: int = 0

    def notes(self) -> dict[str, str]:
        """What a reader should know before comparing rewards of roles."""
        notes = {}
        if self.episodes and self.equal == self.episodes:
            notes["rewards"] = (
                f"the same for all roles in all {self.episodes} episodes: the outcome of the "
                "workflow, not of a role; per-role correctness is graded again from boxed answers"
            )
        if self.graded:
            notes["graded again"] = (
                f"{self.graded} episodes; {self.wrong} disagree with the stored outcome"
            )
        return notes


def spans_of(
    body: Mapping[str, Any], step: int, where: str, job: Job, broadcast: Broadcast
) -> Iterator[SpanRow]:
    """Spans of one episode; what is missing or misshapen is counted.

    Args:
        body: The decoded episode.
        step: Step that it belongs to.
        where: File, for the ledger.
        job: Roles and ledger.
        broadcast: Counts how rewards are shared.
    """
    trajectories = [
        trajectory for trajectory in _trajectories(body, step, where, job) if trajectory
    ]
    outputs = [row for trajectory in trajectories for row in trajectory]
    if not outputs:
        job.ledger.skip("episode without a trajectory", where, step=step)
        return
    reason = body.get("termination_reason")
    if reason and reason not in ("unknown", "env_done", "ENV_DONE"):
        job.ledger.skip(f"episode ended by {str(reason)[:40]}", where, step=step)
    roles = [trajectory[0].role for trajectory in trajectories]
    for trajectory, (slot, turn) in zip(trajectories, turns(roles), strict=True):
        for number_of, row in enumerate(trajectory):
            # A slot in the name is better than the place in the list.
            row.slot = slot if row.slot is None else row.slot
            row.turn = turn + number_of
    facts = regrade([(row.role, row.text) for row in outputs], truth_of(body.get("task")))
    for row, own in zip(outputs, facts, strict=True):
        row.shares = own
    _compare(body, outputs, broadcast)
    yield from outputs


def turns(roles: Iterable[str]) -> list[tuple[int, int]]:
    """Slot and turn of each output of an episode that lists roles in the order of time.

    Outputs of one role in a row are its slots (three generators); a role that comes again after
    another one takes its next turn (generator, evaluator, generator).
    """
    places: list[tuple[int, int]] = []
    taken: dict[str, int] = {}
    before: str | None = None
    slot = 0
    for role in roles:
        if role == before:
            slot += 1
        else:
            slot = 0
            taken[role] = taken.get(role, -1) + 1
        places.append((slot, taken[role]))
        before = role
    return places


def _trajectories(
    body: Mapping[str, Any], step: int, where: str, job: Job
) -> Iterator[list[SpanRow]]:
    """The outputs of each trajectory, in the order of time."""
    episode = _name(body.get("id", body.get("episode_id")), where)
    prompt = _problem(body, episode)
    for trajectory in rows(body.get("trajectories")):
        name = text(trajectory.get("name")) or text(trajectory.get("agent_name")) or ""
        if not name:
            job.ledger.skip("trajectory without a name", where, step=step)
            continue
        steps = rows(trajectory.get("steps"))
        if not steps:
            job.ledger.skip("trajectory without a step", where, step=step)
        outputs = []
        for entry in steps:
            row = _output(entry, step, name, job)
            row.episode, row.prompt = episode, prompt
            row.group = f"{prompt}|{name}"
            if row.reward is None:
                row.reward = number(trajectory.get("reward"))
            outputs.append(row)
        yield outputs


def _output(entry: Mapping[str, Any], step: int, name: str, job: Job) -> SpanRow:
    output = section(entry, "model_output")
    chat = rows(entry.get("chat_completions"))
    answered = bool(chat) and chat[-1].get("role") == "assistant"
    written = text(output.get("content")) or text(output.get("text"))
    if written is None and answered:
        written = content(chat[-1].get("content"))
    if written is None:
        written = text(entry.get("model_response"))
    prompt = prompt_of(chat)
    role, slot = job.roles.resolve(name, prompt)
    finish = output.get("finish_reason")
    return SpanRow(
        step=step,
        role=role,
        slot=slot,
        tokens=integer(output.get("completion_length")),
        truncated=finish == "length" if finish in ("length", "stop") else None,
        reward=number(entry.get("reward")),
        text=written,
        prompt_text=prompt,
    )


def _problem(body: Mapping[str, Any], episode: str) -> str:
    """The same for all rollouts of a problem: by its text, else by the episode's name."""
    task = body.get("task")
    if isinstance(task, Mapping):
        for key in ("question", "problem", "prompt", "id", "uid"):
            if isinstance(task.get(key), str) and task[key]:
                return str(task[key])[:200]
    if isinstance(body.get("task_hash"), str):
        return str(body["task_hash"])
    if isinstance(task, str) and task:
        return task[:200]
    return episode.partition("_run_")[0].partition(":")[0]


def _name(value: object, where: str) -> str:
    return str(value) if isinstance(value, str | int) else where


def _compare(body: Mapping[str, Any], outputs: list[SpanRow], broadcast: Broadcast) -> None:
    rewards = {row.reward for row in outputs if row.reward is not None}
    if len({row.role for row in outputs}) > 1 and rewards:
        broadcast.episodes += 1
        broadcast.equal += len(rewards) == 1
    stored = body.get("is_correct")
    again = next((row.shares["correct"] for row in reversed(outputs) if _final(row)), None)
    if isinstance(stored, bool) and again is not None:
        broadcast.graded += 1
        broadcast.wrong += stored != again


def _final(row: SpanRow) -> bool:
    """Whether the row's correctness is that of the workflow: a judge's is not."""
    return "correct" in row.shares and duty_of(row.role) != "judge"
