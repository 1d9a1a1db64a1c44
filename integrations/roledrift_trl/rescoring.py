"""Scoring rows again after the optimizer step: what it did, and how far the policy has come.

Shape suffixes: B rows, C completion positions, L prompt and completion positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from roledrift.capture.batch import RoleBatch
from roledrift.config import Config
from roledrift.workflow import Workflow
from roledrift_trl.batch import Rows, column
from roledrift_trl.turns import Spans

_TENSORS = ("ids_BL", "attention_BL", "mask_BC", "logp_BC")


def choose(parts: Sequence[Rows], *, per_role: int, roles: int) -> list[Rows]:
    """Rows to score again: the first ``per_role`` of each role, filled up with any others.

    Filling up makes the number of rows, and so of model calls, the same on every process: a sharded
    model waits for all of them.

    Args:
        parts: Micro-batches of one optimizer step.
        per_role: Rows per role.
        roles: Roles in the registry.

    Returns:
        One entry per generation that the micro-batches are from.
    """
    by_generation: dict[int, list[Rows]] = {}
    for part in parts:
        by_generation.setdefault(part.made.number, []).append(part)
    quota = -(-per_role // max(len(by_generation), 1))
    return [_chosen(group, quota, roles) for group in by_generation.values()]


def _chosen(parts: Sequence[Rows], quota: int, roles: int) -> Rows:
    every = [role for part in parts for role in part.roles]
    first = [row for row, role in enumerate(every) if role >= 0 and every[:row].count(role) < quota]
    rest = [row for row in range(len(every)) if row not in first]
    rows = sorted([*first, *rest][: quota * roles])
    index = column(rows, parts[0].ids_BL.device)
    columns = {name: torch.cat([getattr(part, name) for part in parts])[index] for name in _TENSORS}
    slots = [slot for part in parts for slot in part.slots or ()]
    return Rows(
        parts[0].made,
        Spans(tuple(range(len(rows))), tuple(every[row] for row in rows)),
        tuple(slots[row] for row in rows) if slots else None,
        **columns,
    )


def score_again(rows: Rows, score: Callable[..., Any], *, model: Any, chunk: int) -> Rows:
    """The rows with their log-probabilities under the model as it is now.

    Args:
        rows: What to score.
        score: TRL's ``_get_per_token_logps_and_entropies``.
        model: The model, in evaluation mode.
        chunk: Rows per model call.
    """
    width = rows.mask_BC.shape[1]
    with torch.no_grad():
        result = score(model, rows.ids_BL, rows.attention_BL, width, batch_size=chunk)
    # A pair until TRL 1.0, three since: the first one has always been the log-probabilities.
    return replace(rows, logp_BC=result[0])


def score_all(rows: Sequence[Rows], score: Callable[..., Any], *, trainer: Any) -> list[Rows]:
    """The rows of each generation with their log-probabilities under the model as it is now."""
    if not rows:
        return []
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    model = trainer.model_wrapped if sharded else trainer.model
    chunk = int(trainer.args.per_device_train_batch_size)
    with evaluating(model):
        return [score_again(part, score, model=model, chunk=chunk) for part in rows]


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Switch off dropout and gradient checkpointing; afterwards every module is as it was.

    ``model.train()`` would not do: it also switches modules that the user keeps in evaluation mode.
    """
    before = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in before:
            module.training = training


def is_noisy(model: torch.nn.Module) -> bool:
    """True if the training forward is random (dropout), so it is no "before" for a re-scoring."""
    layers = any(
        isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules()
    )
    config = getattr(model, "config", None)
    settings = {} if config is None else vars(config)
    return layers or any(
        "drop" in name and isinstance(value, float) and value > 0
        for name, value in settings.items()
    )


@contextmanager
def adapter_off(model: Any) -> Iterator[None]:
    """The base model; afterwards the same parameters have gradients as before.

    PEFT switches them on for whole adapters on the way out, also where the user had frozen some.
    """
    before = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        with model.disable_adapter():
            yield
    finally:
        for weight, trained in before:
            weight.requires_grad_(trained)


def has_reference(trainer: Any) -> bool:
    """True if the reference model is the model with its adapter off, and TRL does not score by it.

    With ``beta > 0`` TRL computes the reference's log-probabilities of all rows itself. Sharded
    models are left alone: their parameters must not change what they are between two steps.
    """
    sharded = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    adapted = hasattr(trainer.model, "disable_adapter") and hasattr(trainer.model, "peft_config")
    return adapted and not sharded and not getattr(trainer, "beta", 0.0)


def wants_reference(config: Config, step: int) -> bool:
    """Whether rows that are scored again in ``step`` are to be scored by the reference too."""
    every = 1 if config.tier == "full" else config.rescore.reference_every
    return every > 0 and step % (max(config.rescore.every, 1) * every) == 0


def compared(
    workflow: Workflow, before: Rows, after: Rows, reference: Rows | None, *, temperature: float
) -> RoleBatch:
    """Rows that were scored before and after the step, and maybe by the reference, as a batch."""
    return RoleBatch.rescored(
        workflow,
        role=column(after.roles, after.logp_BC.device),
        mask=after.mask_BC,
        before=before.logp_BC,
        after=after.logp_BC,
        slot=after.slots,
        reference_logp=None if reference is None else reference.logp_BC,
        temperature=temperature,
    )
