"""What verl's batches hold, as :class:`~roledrift.capture.batch.RoleBatch`.

Functions over plain data; nothing of verl is imported. Both of verl's batches come as rows: the
padded ``DataProto`` of the trainers up to 0.8, and the ragged ``TensorDict`` that the V1 trainer
keeps in its TransferQueue. Shape suffixes: B rows, T response positions.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from roledrift.capture.batch import RoleBatch
from roledrift.ingest.roles import RoleMap
from roledrift.measure.sampling import TextSampler
from roledrift.records import Sample
from roledrift.workflow import Workflow
from roledrift_verl.columns import inherited

TOKENS = (
    *("response_mask", "old_log_probs", "rollout_log_probs", "ref_log_prob", "entropy"),
    *("token_level_scores", "rm_scores", "advantages"),
)
"""Columns over response positions, as both kinds of batch call them."""

FIELDS = ("prompts", "responses", "uid", "extra_fields", *TOKENS)
"""What is asked of the TransferQueue; a field that it does not have is left out by it."""

PADDING = ("is_padding", "is_pad_step")
"""Marks of rows that only fill up a batch: verl's tags, and rLLM's column."""

_NAMES = ("role", "group_roles", "agent_id")
"""Columns that name a row's role: verl by convention, rLLM, Dr. MAS."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows of one step, without those that only fill up the batch.

    Attributes:
        tokens: Columns of :data:`TOKENS` that there are, padded on the right, ``(B, T)``.
        prompts: Token ids of the prompts, without padding.
        responses: Token ids of the responses, without padding.
        named: What each row says about itself: ``uid``, ``role``, ``slot``, ``turn``, ``episode``.
        places: Place of each row in the batch that also holds those that fill it up.
        index: Number of the output within its episode, where the batch says so.
    """

    tokens: Mapping[str, Tensor]
    prompts: tuple[list[int], ...]
    responses: tuple[list[int], ...]
    named: tuple[Mapping[str, Any], ...]
    places: tuple[int, ...] = ()
    index: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the responses and their log-probabilities came about.

    Attributes:
        temperature: Sampling temperature; verl takes the trainer's log-probabilities at it too.
        rollout_temperature: That of the engine's log-probabilities; None if unknown.
        longest: Most tokens a response may have.
        ends: Token ids that end a response.
        bypass: ``old_log_probs`` are the engine's own: there is nothing to compare.
        on_policy: The weights that sampled are those that ``old_log_probs`` are of.
    """

    temperature: float | None = None
    rollout_temperature: float | None = None
    longest: int = 0
    ends: frozenset[int] = frozenset()
    bypass: bool = False
    on_policy: bool = True


def from_data_proto(data: Any, *, entropy: Tensor | None = None) -> Rows:
    """Rows of a ``DataProto``, as the trainers up to verl 0.8 and their descendants hold them.

    Args:
        data: Anything with ``batch`` (a mapping of padded tensors) and ``non_tensor_batch`` (a
            mapping of columns).
        entropy: Entropy per token, ``(B, T)``, which verl takes out of the batch.
    """
    batch, columns = data.batch, data.non_tensor_batch
    present = set(batch.keys())
    tokens = {name: batch[name] for name in TOKENS if name in present}
    if entropy is not None and entropy.shape == tokens["response_mask"].shape:
        tokens["entropy"] = entropy
    width = batch["prompts"].shape[1]
    real = batch["attention_mask"].bool()
    named = [_named(columns, row) for row in range(real.shape[0])]
    kept = [row for row, facts in enumerate(named) if not any(facts.get(mark) for mark in PADDING)]
    return Rows(
        {name: value[kept] for name, value in tokens.items()},
        tuple(batch["prompts"][row][real[row, :width]].tolist() for row in kept),
        tuple(batch["responses"][row][real[row, width:]].tolist() for row in kept),
        tuple(named[row] for row in kept),
        tuple(kept),
    )


def from_queue(data: Any, keys: Sequence[str], tags: Sequence[Mapping[str, Any]]) -> Rows:
    """Rows of a ``TensorDict`` of ragged tensors, as verl's V1 trainer keeps them.

    Args:
        data: A mapping of nested tensors ``(B, *)`` and of columns.
        keys: ``{uid}_{rollout}_{output index}`` per row.
        tags: The queue's notes per row; padding is marked there.
    """
    present = set(data.keys())
    kept = [row for row, tag in enumerate(tags) if not any(tag.get(mark) for mark in PADDING)]
    columns = {name: list(data[name]) for name in ("uid", "extra_fields") if name in present}
    parts = [key.rsplit("_", 2) for key in keys]
    named = [
        {"uid": uid, **_named(columns, row), "episode": f"{uid}_{rollout}"}
        for row, (uid, rollout, _) in enumerate(parts)
    ]
    return Rows(
        {name: _padded(data[name])[kept] for name in TOKENS if name in present},
        _lists(data["prompts"], kept),
        _lists(data["responses"], kept),
        tuple(named[row] for row in kept),
        tuple(kept),
        tuple(int(parts[row][2]) for row in kept),
    )


def _named(columns: Mapping[str, Sequence[Any]], row: int) -> dict[str, Any]:
    """What a row says about itself; what an agent loop put into ``extra_fields`` comes first."""
    own = columns["extra_fields"][row] if "extra_fields" in columns else None
    extra = own if isinstance(own, Mapping) else {}
    names = ("uid", "slot", "turn", "episode", *_NAMES, *PADDING)
    columns_of_row = {name: columns[name][row] for name in names if name in columns}
    stated = {name: extra[name] for name in names if name in extra}
    return {**inherited(columns, row), **columns_of_row, **stated}


def _padded(value: Tensor) -> Tensor:
    return value.to_padded_tensor(0) if value.is_nested else value


def _lists(value: Tensor, kept: Sequence[int]) -> tuple[list[int], ...]:
    rows = value.unbind()
    return tuple(rows[row].tolist() for row in kept)


def speakers(
    rows: Rows, names: RoleMap, decode: Callable[[list[int]], str]
) -> list[tuple[str, int | None]]:
    """Role and slot of every row; an empty role where nothing names one.

    A row's own ``role`` counts first, then the number of the output within its episode, then what
    its prompt says; ``names`` translates all three.

    Args:
        rows: Rows of a step.
        names: How names, numbers and prompts translate into roles.
        decode: Token ids to text, for rules on prompts.
    """
    by_prompt = any(rule.by_prompt for rule in names.rules)
    numbered = {rule.name for rule in names.rules if not rule.by_prompt}
    texts = _once(rows.prompts, decode) if by_prompt else None
    speakers_of_rows: list[tuple[str, int | None]] = []
    for row, facts in enumerate(rows.named):
        name = next((str(facts[key]) for key in _NAMES if facts.get(key) not in (None, "")), "")
        if not name and rows.index is not None and str(rows.index[row]) in numbered:
            name = str(rows.index[row])
        if not name and texts is None:
            speakers_of_rows.append(("", None))
            continue
        role, slot = names.resolve(name or "-", texts[row] if texts else "")
        own = facts.get("slot")
        role = "" if role == "unnamed" else role
        speakers_of_rows.append((role, slot if own is None else int(own)))
    return speakers_of_rows


def _once(prompts: Sequence[list[int]], decode: Callable[[list[int]], str]) -> list[str]:
    texts: dict[str, str] = {}
    for ids in prompts:
        name = prompt_name(ids)
        if name not in texts:
            texts[name] = decode(ids)
    return [texts[prompt_name(ids)] for ids in prompts]


def prompt_name(ids: Sequence[int]) -> str:
    """Stable short name of a prompt: the same tokens have the same name in every run."""
    return hashlib.sha256(array("q", ids).tobytes()).hexdigest()[:12]


def truncated(rows: Rows, how: Sampling) -> list[bool]:
    """Per row: it is as long as allowed, and its last token ends nothing."""
    return [
        how.longest > 0 and len(ids) >= how.longest and ids[-1] not in how.ends
        for ids in rows.responses
    ]


def role_batch(
    workflow: Workflow,
    rows: Rows,
    who: Sequence[tuple[str, int | None]],
    *,
    how: Sampling,
    texts: Sequence[str] | None = None,
) -> RoleBatch:
    """The outputs of one step, and the comparison of trainer and rollout engine.

    Args:
        workflow: Gives the registry of roles; other roles are counted as faults.
        rows: Rows of the step.
        who: Role and slot per row.
        how: How the rows were sampled.
        texts: Decoded responses.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    mask_BT = rows.tokens["response_mask"] != 0
    score_BT = rows.tokens.get("token_level_scores", rows.tokens.get("rm_scores"))
    trainer = {} if how.bypass else _compared(rows)
    return RoleBatch.from_padded(
        workflow,
        role=torch.tensor([index.get(role, -1) for role, _ in who], dtype=torch.int64),
        mask=mask_BT,
        slot=_slots(workflow, who),
        turn=_integers([facts.get("turn") for facts in rows.named]),
        # verl's uid is the problem: an aggregator's prompt differs from its generators'.
        prompt=_numbers([facts.get("problem", facts.get("uid")) for facts in rows.named]),
        episode=_numbers([facts.get("episode") for facts in rows.named]),
        group=_numbers([facts.get("uid") for facts in rows.named]),
        truncated=truncated(rows, how) if how.longest else None,
        reward=None if score_BT is None else score_BT.sum(dim=1),
        advantage=rows.tokens.get("advantages"),
        entropy=None if how.bypass else rows.tokens.get("entropy"),
        temperature=how.temperature,
        rollout_temperature=how.rollout_temperature,
        steps_between=0 if how.on_policy else None,
        text=texts,
        **trainer,
    )


def _compared(rows: Rows) -> dict[str, Any]:
    if "old_log_probs" not in rows.tokens:
        return {}
    return {
        "logp": rows.tokens["old_log_probs"],
        "rollout_logp": rows.tokens.get("rollout_log_probs"),
        "reference_logp": rows.tokens.get("ref_log_prob"),
    }


def _numbers(names: Sequence[Any]) -> list[int] | None:
    """Names as numbers within the step; None unless every row has one."""
    if any(name is None for name in names):
        return None
    order = {name: number for number, name in enumerate(dict.fromkeys(map(str, names)))}
    return [order[str(name)] for name in names]


def _slots(workflow: Workflow, who: Sequence[tuple[str, int | None]]) -> list[int] | None:
    """None if a role with several slots does not say which one a row is from."""
    single = {role.name for role in workflow.roles if role.slots < 2}
    if any(slot is None and role not in ("", *single) for role, slot in who):
        return None
    return [slot or 0 for _, slot in who]


def _integers(values: Sequence[Any]) -> list[int] | None:
    return None if any(value is None for value in values) else [int(value) for value in values]


def samples(
    workflow: Workflow,
    rows: Rows,
    who: Sequence[tuple[str, int | None]],
    *,
    how: Sampling,
    step: int,
    sampler: TextSampler,
    decode: Callable[[list[int]], str],
) -> list[Sample]:
    """The texts of a step that the sampler keeps; only those are decoded."""
    known = [row for row, (role, _) in enumerate(who) if role in workflow.role_names]
    mask_BT = rows.tokens["response_mask"] != 0
    tokens = mask_BT.sum(1).tolist()
    rewards, advantages = _rewards(rows), _advantages(rows, mask_BT)
    cut = truncated(rows, how)
    kept = []
    for pick in sampler.pick(
        step,
        [who[row][0] for row in known],
        tokens=[tokens[row] for row in known],
        prompts=[prompt_name(rows.prompts[row]) for row in known],
        advantages=None if advantages is None else [advantages[row] for row in known],
        truncated=[cut[row] for row in known],
    ):
        row = known[pick.row]
        role, slot = who[row]
        kept.append(
            Sample(
                step=step,
                role=role,
                text=decode(rows.responses[row]),
                slot=slot or 0,
                policy=workflow.policy_of(role),
                prompt=prompt_name(rows.prompts[row]),
                episode=str(rows.named[row].get("episode") or f"{step}-{row}"),
                prompt_text=decode(rows.prompts[row]),
                tokens=tokens[row],
                finish="length" if cut[row] else "stop",
                reward=math.nan if rewards is None else rewards[row],
                advantage=math.nan if advantages is None else advantages[row],
                flags=pick.flags,
            )
        )
    return kept


def _rewards(rows: Rows) -> list[float] | None:
    """Sums over the tokens, as verl's ``critic/score``."""
    score_BT = rows.tokens.get("token_level_scores", rows.tokens.get("rm_scores"))
    return None if score_BT is None else [float(total) for total in score_BT.sum(1)]


def _advantages(rows: Rows, mask_BT: Tensor) -> list[float] | None:
    """Means over the trained tokens."""
    advantage_BT = rows.tokens.get("advantages")
    if advantage_BT is None:
        return None
    total_B = advantage_BT.masked_fill(~mask_BT, 0).sum(1)
    return [float(mean) for mean in total_B / mask_BT.sum(1).clamp(min=1)]
