"""What rLLM's trainer state holds after a batch, as rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from roledrift_verl.batch import Rows, from_data_proto
from torch import Tensor


def rows_of(state: Any, *, on_policy: bool) -> Rows:
    """Rows of the batch that was just trained on.

    With verl underneath these are the rows that verl trained on: one per trajectory, or several
    where a later prompt does not continue an earlier one. Elsewhere one per call of the model.

    Args:
        state: rLLM's ``TrainerState``.
        on_policy: The weights that sampled are those that were trained.
    """
    if hasattr(state.backend_batch, "non_tensor_batch"):
        return from_data_proto(state.backend_batch)
    return from_groups(state.trajectory_groups or (), on_policy=on_policy)


def from_groups(groups: Sequence[Any], *, on_policy: bool) -> Rows:
    """Rows of rLLM's ``TrajectoryGroup``: one per ``Step`` that has tokens.

    Args:
        groups: Groups of trajectories whose rewards were compared.
        on_policy: The sampler's log-probabilities are then also those of the policy being trained.
    """
    steps, named, scores = [], [], []
    for group in groups:
        for number, trajectory in enumerate(group.trajectories):
            facts = _named(group, number)
            for turn, step in enumerate(trajectory.steps):
                if step.response_ids:
                    steps.append(step)
                    named.append({**facts, "turn": turn})
                    scores.append(trajectory.reward)
    tokens: dict[str, Tensor] = {}
    if steps:
        tokens["response_mask"] = _padded([[1.0] * len(step.response_ids) for step in steps])
    if steps and all(score is not None for score in scores):
        # As rLLM hands them to verl: the trajectory's reward at the last token.
        last = [[0.0] * (len(step.response_ids) - 1) for step in steps]
        tokens["token_level_scores"] = _padded(
            [[*zeros, float(score)] for zeros, score in zip(last, scores, strict=True)]
        )
    if steps and all(step.advantage is not None for step in steps):
        tokens["advantages"] = _padded([_per_token(step) for step in steps])
    if steps and all(len(step.logprobs) == len(step.response_ids) for step in steps):
        name = "old_log_probs" if on_policy else "rollout_log_probs"
        tokens[name] = _padded([step.logprobs for step in steps])
    return Rows(
        tokens=tokens,
        # Where there are images, the ids are mixed with other things.
        prompts=tuple(
            [token for token in step.prompt_ids if isinstance(token, int)] for step in steps
        ),
        responses=tuple(list(step.response_ids) for step in steps),
        named=tuple(named),
    )


def _named(group: Any, number: int) -> dict[str, Any]:
    facts = {"role": group.group_role, "problem": group.task_id, "uid": group.group_id}
    if number < len(group.metadata) and "rollout_idx" in group.metadata[number]:
        return {**facts, "episode": f"{group.task_id}:{group.metadata[number]['rollout_idx']}"}
    return facts


def _per_token(step: Any) -> list[float]:
    if isinstance(step.advantage, list):
        return step.advantage
    return [float(step.advantage)] * len(step.response_ids)


def _padded(values: Sequence[Sequence[float]]) -> Tensor:
    parts = [torch.tensor(value, dtype=torch.float32) for value in values]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True)
