"""What TRL's batches hold, as :class:`~roledrift.capture.batch.RoleBatch`.

Functions over plain data. Shape suffixes: B rows, C completion positions, L prompt and completion
positions, F reward functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from roledrift.capture.batch import RoleBatch
from roledrift.errors import ConfigError
from roledrift.measure.sampling import TextSampler
from roledrift.records import Sample
from roledrift.store.reader import find_runs, open_run
from roledrift.workflow import Workflow

ROW = "roledrift_row"
"""Key of the column that carries each row's number through TRL's shuffling and splitting.

It is an int64 tensor ``(B,)`` on the CPU: TRL permutes and slices tensors wherever they are, and on
the CPU it says which role a row has without waiting for the device.
"""

_CLIPPED_LOSSES = frozenset({"grpo", "bnpo", "dr_grpo", "dapo", "luspo"})


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
        number: Counts generations, the same on every process.
        step: Optimizer steps done when they were generated.
        roles: Registry index per row; -1 for a role that the workflow does not have.
        slots: Copy of the role per row, if the dataset has such a column.
        prompts: Number of the problem per row; the same prompt has the same number everywhere.
    """

    number: int
    step: int
    roles: tuple[int, ...]
    slots: tuple[int, ...] | None
    prompts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as the loss saw them; those of one generation have the same padding.

    Attributes:
        made: The generation they are from.
        roles: Registry index per row.
        slots: Copy of the role per row, if the dataset has such a column.
        ids_BL: Prompt and completion ids.
        attention_BL: Its attention mask.
        mask_BC: Tokens the loss is taken over.
        logp_BC: Log-probabilities before the optimizer step, detached.
    """

    made: Generation
    roles: tuple[int, ...]
    slots: tuple[int, ...] | None
    ids_BL: Tensor
    attention_BL: Tensor
    mask_BC: Tensor
    logp_BC: Tensor


def scored(call: Sequence[Any], rewards_BF: Tensor, trainer: Any) -> Scored:
    """What one call of TRL's ``_calculate_rewards`` says about the rows of this process.

    Args:
        call: Its arguments: rows, prompts, completions, completion ids.
        rewards_BF: Its result, rows of all processes; NaN where a reward function abstained.
        trainer: For the weight per reward function and the number of this process.
    """
    _, prompts, completions, ids = call
    first = trainer.accelerator.process_index * len(prompts)
    mine_BF = rewards_BF[first : first + len(prompts)]
    total_B = (mine_BF * trainer.reward_weights.to(mine_BF.device)).nansum(dim=1)
    total_B = total_B.masked_fill(mine_BF.isnan().all(dim=1), torch.nan)
    return Scored(prompts, completions, ids, total_B)


def generation(
    workflow: Workflow,
    rows: Sequence[Mapping[str, Any]],
    *,
    columns: tuple[str, str | None],
    after: Generation | None,
    step: int,
) -> Generation:
    """Roles and slots of the rows of one generation.

    Args:
        workflow: Gives the registry of roles.
        rows: Dataset rows, each repeated once per completion.
        columns: Names of the role column and, if there is one, of the slot column.
        after: The generation before this one.
        step: Optimizer steps done so far.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    role, slot = columns
    roles = tuple(index.get(row.get(role, ""), -1) for row in rows)
    slots = None if slot is None else tuple(int(row[slot]) for row in rows)
    # Dataset rows repeat, and a name is a hash of the whole prompt.
    named = {id(prompt): prompt_name(prompt) for prompt in (row.get("prompt") for row in rows)}
    prompts = tuple(int(named[id(row.get("prompt"))], 16) for row in rows)
    return Generation(0 if after is None else after.number + 1, step, roles, slots, prompts)


def rollout(
    workflow: Workflow, made: Generation, out: Mapping[str, Any], *, source: Scored, trainer: Any
) -> RoleBatch:
    """The outputs of one generation: lengths, truncation, rewards, advantages, texts.

    A length is the number of tokens the model wrote, also where ``mask_truncated_completions``
    takes a truncated row out of the loss. Groups are TRL's: ``num_generations`` rows in a row. They
    are left out where processes cut through them: half a group does not say whether it is uniform.
    """
    device, count = out["completion_ids"].device, len(made.roles)
    length_B = column([len(ids) for ids in source.ids], device)
    mask_BC = torch.arange(out["completion_ids"].shape[1], device=device) < length_B[:, None]
    if out.get("tool_mask") is not None:
        # Rows that mask_truncated_completions took out have lost their tool mask as well.
        emptied_B = out["completion_mask"].sum(dim=1) == 0
        mask_BC = mask_BC & (out["tool_mask"].bool() | emptied_B[:, None])
    size = trainer.num_generations
    groups = [made.number * count + row // size for row in range(count)]
    names = [prompt_name(prompt) for prompt in source.prompts]
    numbers = {name: made.number * count + i for i, name in enumerate(dict.fromkeys(names))}
    return RoleBatch.from_padded(
        workflow,
        role=column(made.roles, device),
        mask=mask_BC,
        slot=made.slots,
        prompt=[numbers[name] for name in names],
        group=groups if count % size == 0 else None,
        truncated=truncated(source, trainer),
        reward=source.reward_B,
        advantage=out["advantages"],
        text=[text_of(one) for one in source.completions],
    )


def truncated(source: Scored, trainer: Any) -> list[bool]:
    """Per row: it is as long as allowed, and its last token ends nothing."""
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    ends = {*getattr(trainer, "eos_token_ids", ()), tokenizer.eos_token_id, tokenizer.pad_token_id}
    limit = trainer.max_completion_length or 0
    return [len(ids) >= limit and (not len(ids) or ids[-1] not in ends) for ids in source.ids]


def samples(
    workflow: Workflow,
    made: Generation,
    out: Mapping[str, Any],
    *,
    source: Scored,
    trainer: Any,
    sampler: TextSampler,
) -> list[Sample]:
    """The texts of a generation that the sampler keeps.

    Reading rewards and advantages here waits for nothing: TRL has read both from the device in the
    call that is just ending.
    """
    rows = [row for row, role in enumerate(made.roles) if role >= 0]
    names = [prompt_name(source.prompts[row]) for row in rows]
    roles = [workflow.role_names[made.roles[row]] for row in rows]
    cut, tokens = truncated(source, trainer), [len(source.ids[row]) for row in rows]
    kept = []
    advantages = out["advantages"].float()
    means = (advantages if advantages.ndim == 1 else advantages.mean(dim=1)).tolist()
    picks = sampler.pick(
        made.step + 1,
        roles,
        tokens=tokens,
        prompts=names,
        advantages=[means[row] for row in rows],
        truncated=[cut[row] for row in rows],
    )
    for pick in picks:
        row = rows[pick.row]
        sample = Sample(
            step=made.step + 1,
            role=roles[pick.row],
            text=text_of(source.completions[row]),
            slot=0 if made.slots is None else made.slots[row],
            policy=workflow.policy_of(roles[pick.row]),
            prompt=names[pick.row],
            episode=f"{made.number}-{row}",
            prompt_text=text_of(source.prompts[row]),
            tokens=tokens[pick.row],
            finish="length" if cut[row] else "stop",
            reward=float(source.reward_B[row]),
            advantage=means[row],
            flags=pick.flags,
        )
        kept.append(sample)
    return kept


def column(values: Sequence[int], device: torch.device) -> Tensor:
    """Whole numbers as an int64 tensor on the device, without waiting for what it is busy with."""
    return torch.tensor(values, dtype=torch.int64).to(device, non_blocking=True)


def text_of(message: Any) -> str:
    """A prompt or completion as one text; messages are joined by line breaks."""
    if isinstance(message, str):
        return message
    return "\n".join(_content(one.get("content")) for one in message)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content)
    return "" if content is None else str(content)


def prompt_name(prompt: Any) -> str:
    """Stable short name of a problem: the same prompt has the same name in every run."""
    text = prompt if isinstance(prompt, str) else json.dumps(prompt, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def trained(made: Generation, inputs: Mapping[str, Any], logp_BC: Tensor) -> Rows:
    """The micro-batch whose loss has just been computed."""
    mask_BC = inputs["completion_mask"]
    if inputs.get("tool_mask") is not None:
        mask_BC = mask_BC * inputs["tool_mask"]
    ids_BL, attention_BL = (
        torch.cat([inputs[f"prompt_{kind}"], inputs[f"completion_{kind}"]], dim=1)
        for kind in ("ids", "mask")
    )
    rows = inputs[ROW].tolist()
    roles = tuple(made.roles[row] for row in rows)
    slots = None if made.slots is None else tuple(made.slots[row] for row in rows)
    return Rows(made, roles, slots, ids_BL, attention_BL, mask_BC, logp_BC.detach())


def update(
    workflow: Workflow,
    rows: Rows,
    inputs: Mapping[str, Any],
    *,
    forward: Sequence[Any],
    trainer: Any,
) -> RoleBatch:
    """What the policy being trained says about one micro-batch: an update pass, no new outputs.

    Args:
        workflow: Gives the registry of roles.
        rows: The micro-batch.
        inputs: TRL's own dictionary of it.
        forward: Log-probabilities ``(B, C)`` and entropies ``(B, C)`` or None, both in nats.
        trainer: For temperature and clipping.
    """
    level = getattr(trainer, "importance_sampling_level", "token")
    clips = getattr(trainer, "loss_type", "") in _CLIPPED_LOSSES and level == "token"
    # TRL asks vLLM for log-probabilities at the sampling temperature; at which one a rollout
    # function reports, nobody says.
    engine = float(trainer.temperature) if getattr(trainer, "use_vllm", False) else None
    return RoleBatch.from_padded(
        workflow,
        role=column(rows.roles, rows.logp_BC.device),
        mask=rows.mask_BC,
        slot=rows.slots,
        advantage=inputs["advantages"],
        logp=rows.logp_BC,
        old_logp=inputs.get("old_per_token_logps"),
        rollout_logp=inputs.get("sampling_per_token_logps"),
        reference_logp=inputs.get("ref_per_token_logps"),
        entropy=None if forward[1] is None else forward[1].detach(),
        temperature=float(trainer.temperature),
        rollout_temperature=engine,
        clip=(float(trainer.epsilon_low), float(trainer.epsilon_high)) if clips else None,
        steps_between=int(trainer.state.global_step) - rows.made.step,
        outputs=False,
    )


def check_dataset(trainer: Any, workflow: Workflow, columns: tuple[str, str | None]) -> None:
    """Does the training dataset name a known role for every row, and does the column get through?

    Raises:
        ConfigError: Saying what the dataset holds and what to change.
    """
    dataset = trainer.train_dataset
    there = getattr(dataset, "column_names", None)
    if getattr(trainer, "rollout_func", None) is not None:
        there = None
    for name, setting in zip(columns, ("role_column", "slot_column"), strict=True):
        if name is None:
            continue
        if there is not None and name not in there:
            raise ConfigError(
                f"the training dataset has no column {name!r}; its columns are {sorted(there)}: "
                f"add it, or name the right one with RoleDriftCallback({setting}=...)"
            )
        kept = getattr(trainer, "_signature_columns", None) or ("prompt", "image", "images")
        if there is not None and trainer.args.remove_unused_columns and name not in kept:
            raise ConfigError(
                f"remove_unused_columns=True drops the column {name!r} before training: "
                "set GRPOConfig(remove_unused_columns=False)"
            )
    if there is None or not hasattr(dataset, "unique"):
        return
    for value in dataset.unique(columns[0]):
        if not isinstance(value, str):
            raise ConfigError(f"column {columns[0]!r} holds {value!r}: every row needs a role name")
        try:
            workflow.index(value)
        except ConfigError as error:
            raise ConfigError(f"column {columns[0]!r} of the training dataset: {error}") from None


def canaries(out: Path) -> list[str]:
    """Prompts that the earlier segments of a run followed."""
    if not find_runs(out):
        return []
    return [one.prompt for one in open_run(out).samples() if "canary" in one.flags]
