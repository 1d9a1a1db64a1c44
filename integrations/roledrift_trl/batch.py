"""What TRL's batches hold, as :class:`~roledrift.capture.batch.RoleBatch`: functions over plain data.

Shape suffixes: B rows, C completion positions, F reward functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from roledrift.capture.batch import RoleBatch
from roledrift.records import Sample
from roledrift.workflow import Workflow
from torch import Tensor

ROW = "roledrift_row"
"""Key of the column that carries each row's number through TRL's shuffling and splitting.

It is an int64 tensor ``(B,)`` on the CPU: TRL permutes and slices tensors wherever they are, and on the
CPU it says which role a row has without waiting for the device.
"""

_CLIPPED_LOSSES = frozenset({"grpo", "bnpo", "dr_grpo", "dapo", "luspo"})
_IMAGES = ("pixel_values", "image_grid_thw", "num_images")


@dataclass(frozen=True, slots=True)
class Scored:
    """What TRL handed to the reward functions, and what came back.

    Attributes:
        prompts: One per local row.
        completions: One per local row: a string, or a list of messages.
        ids: Token ids of the completions, without padding.
        reward_B: Weighted sum over reward functions, of the local rows; NaN where none gave one.
    """

    prompts: Sequence[Any]
    completions: Sequence[Any]
    ids: Sequence[Sequence[int]]
    reward_B: Tensor


@dataclass(frozen=True, slots=True)
class Generation:
    """The rows that were generated last, in the order of generation.

    Attributes:
        step: Optimizer steps done when they were generated.
        roles: Registry index per row; -1 for a role that the workflow does not have.
        slots: Copy of the role per row, if the dataset has such a column.
    """

    step: int
    roles: tuple[int, ...]
    slots: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch as the loss saw it.

    Attributes:
        inputs: TRL's own dictionary; not copied.
        roles: Registry index per row.
        mask_BC: Tokens the loss is taken over.
        logp_BC: Log-probabilities of the policy before the optimizer step, detached.
    """

    inputs: Mapping[str, Any]
    roles: tuple[int, ...]
    mask_BC: Tensor
    logp_BC: Tensor


@dataclass(frozen=True, slots=True)
class Probe:
    """Rows that are scored again after the optimizer step.

    Attributes:
        roles: Registry index per row.
        prompt_length: Positions of the (left-padded) prompt.
        ids: Prompt and completion ids, ``(B, P + C)``, with ``attention`` of the same shape.
        mask_BC: Tokens the loss is taken over.
        before_BC: Log-probabilities before the step.
    """

    roles: tuple[int, ...]
    ids: Tensor
    attention: Tensor
    mask_BC: Tensor
    before_BC: Tensor


def score(rewards_per_func: Tensor, call: Sequence[Any], *, weights: Tensor, rank: int) -> Scored:
    """What one call of TRL's ``_calculate_rewards`` says about the local rows.

    Args:
        rewards_per_func: Its result: rewards ``(B of all ranks, F)``, NaN where a function abstained.
        call: Its arguments: rows, prompts, completions, completion ids.
        weights: Weight per reward function, ``(F,)``.
        rank: Number of this process.
    """
    _, prompts, completions, ids = call[:4]
    mine = rewards_per_func[rank * len(prompts) : (rank + 1) * len(prompts)]
    reward_B = (mine * weights.to(mine.device)).nansum(dim=1)
    reward_B = reward_B.masked_fill(mine.isnan().all(dim=1), torch.nan)
    return Scored(prompts, completions, ids, reward_B)


def generation(
    workflow: Workflow, rows: Sequence[Mapping[str, Any]], *, columns: tuple[str, str | None], step: int
) -> Generation:
    """Roles and slots of the rows of one generation.

    Args:
        workflow: Gives the registry of roles.
        rows: Dataset rows, each repeated once per completion.
        columns: Names of the role column and, if there is one, of the slot column.
        step: Optimizer steps done so far.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    role, slot = columns
    roles = tuple(index.get(row.get(role, ""), -1) for row in rows)
    slots = None if slot is None else tuple(int(row[slot]) for row in rows)
    return Generation(step, roles, slots)
