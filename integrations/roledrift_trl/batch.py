"""What TRL's batches hold, as :class:`~roledrift.capture.batch.RoleBatch`.

Functions over plain data. Shape suffixes: B rows, C completion positions, L prompt and completion
positions, F reward functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from roledrift.capture.batch import RoleBatch
from roledrift.measure.sampling import TextSampler
from roledrift.records import Sample
from roledrift.workflow import Workflow
from roledrift_trl.turns import Spans, masks_of, spans_of

ROW = "roledrift_row"
"""Key of the column that carries each row's number through TRL's shuffling and splitting.

It is an int64 tensor ``(B,)`` on the CPU: TRL permutes and slices tensors wherever they are, and on
the CPU it says which role a row has without waiting for the device.
"""

OLD, REFERENCE = "roledrift_old", "roledrift_reference"
"""Keys of log-probabilities per token that RLOO computes and keeps only the sums of."""

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
        masks: Role per token of each completion, if a row holds the turns of several roles.
    """

    number: int
    step: int
    roles: tuple[int, ...]
    slots: tuple[int, ...] | None
    prompts: tuple[int, ...]
    masks: tuple[tuple[int, ...], ...] | None = None

    def spans(self, rows: Sequence[int], width: int) -> Spans:
        """Spans of some of its rows, ``width`` completion positions wide."""
        return spans_of(self.roles, self.masks, rows, width=width)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as the loss saw them; those of one generation have the same padding.

    A row with the turns of several roles is there once per role, with that role's mask.

    Attributes:
        made: The generation they are from.
        spans: Which rows of the micro-batch they are, and whose.
        slots: Copy of the role per row, if the dataset has such a column.
        ids_BL: Prompt and completion ids.
        attention_BL: Its attention mask.
        mask_BC: Tokens the loss is taken over.
        logp_BC: Log-probabilities before the optimizer step, detached.
    """

    made: Generation
    spans: Spans
    slots: tuple[int, ...] | None
    ids_BL: Tensor
    attention_BL: Tensor
    mask_BC: Tensor
    logp_BC: Tensor

    @property
    def roles(self) -> tuple[int, ...]:
        """Registry index per row."""
        return self.spans.roles


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
    columns: tuple[str | None, str | None],
    after: Generation | None,
    step: int,
    lengths: Sequence[int] = (),
) -> Generation:
    """Roles and slots of the rows of one generation.

    Args:
        workflow: Gives the registry of roles.
        rows: Dataset rows, each repeated once per completion.
        columns: Names of the role column (None: there is only one role) and, if there is one, of
            the slot column.
        after: The generation before this one.
        step: Optimizer steps done so far.
        lengths: Tokens of each completion.

    Raises:
        CaptureError: If a ``role_mask`` does not fit its completion.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    role, slot = columns
    roles = tuple(0 if role is None else index.get(row.get(role, ""), -1) for row in rows)
    slots = None if slot is None else tuple(int(row[slot]) for row in rows)
    # Dataset rows repeat, and a name is a hash of the whole prompt.
    named = {id(prompt): prompt_name(prompt) for prompt in (row.get("prompt") for row in rows)}
    prompts = tuple(int(named[id(row.get("prompt"))], 16) for row in rows)
    masks = masks_of(rows, lengths, len(index))
    number = 0 if after is None else after.number + 1
    return Generation(number, step, roles, slots, prompts, masks)


def rollout(
    workflow: Workflow, made: Generation, out: Mapping[str, Any], *, source: Scored, trainer: Any
) -> RoleBatch:
    """The outputs of one generation: lengths, truncation, rewards, advantages, texts.

    A length is the number of tokens the model wrote, also where ``mask_truncated_completions``
    takes a truncated row out of the loss. Groups are TRL's: ``num_generations`` rows in a row. They
    are left out where processes cut through them: half a group does not say whether it is uniform.
    """
    device, count = out["completion_ids"].device, len(made.roles)
    spans = made.spans(range(count), out["completion_ids"].shape[1])
    mask_BC = by_the_model(source, out, spans)
    size, roles = trainer.num_generations, len(workflow.role_names)
    groups = [made.number * count + row // size for row in spans.rows]
    if made.masks is not None:  # an advantage group holds rows of one role
        groups = [group * roles + role for group, role in zip(groups, spans.roles, strict=True)]
    names = [prompt_name(prompt) for prompt in source.prompts]
    numbers = {name: made.number * count + i for i, name in enumerate(dict.fromkeys(names))}
    return RoleBatch.from_padded(
        workflow,
        role=column(spans.roles, device),
        mask=spans.own(mask_BC),
        slot=None if made.slots is None else [made.slots[row] for row in spans.rows],
        prompt=[numbers[names[row]] for row in spans.rows],
        group=groups if count % size == 0 else None,
        truncated=truncated(source, trainer, made, spans),
        reward=spans.of(source.reward_B),
        advantage=spans.of(out["advantages"]),
        text=texts(source, out, spans, trainer=trainer),
    )


def by_the_model(source: Scored, out: Mapping[str, Any], spans: Spans) -> Tensor:
    """Mask ``(B, C)`` of the tokens that the model wrote: not padding, not a tool's answer.

    Where a row names the role of each token that is what the roles wrote, also a role whose tokens
    bear no loss.
    """
    width, device = out["completion_ids"].shape[1], out["completion_ids"].device
    length_B = column([len(ids) for ids in source.ids], device)
    mask_BC = torch.arange(width, device=device) < length_B[:, None]
    if out.get("tool_mask") is None or spans.owned_NC is not None:
        return mask_BC
    # Rows that mask_truncated_completions took out have lost their tool mask as well.
    emptied_B: Tensor = out["completion_mask"].sum(dim=1) == 0
    bears_BC: Tensor = out["tool_mask"].bool()
    return mask_BC & (bears_BC | emptied_B[:, None])


def written(source: Scored, out: Mapping[str, Any], spans: Spans) -> Sequence[Sequence[int]] | None:
    """The tokens that each span's role wrote; None where they are those of the whole row."""
    if spans.owned_NC is None and out.get("tool_mask") is None:
        return None
    own_NC = spans.own(by_the_model(source, out, spans)).tolist()
    return [
        [token for token, owned in zip(source.ids[row], own, strict=False) if owned]
        for row, own in zip(spans.rows, own_NC, strict=True)
    ]


def texts(source: Scored, out: Mapping[str, Any], spans: Spans, *, trainer: Any) -> list[str]:
    """What each span says: the completion, or what its role wrote of it."""
    ids = written(source, out, spans)
    if ids is None:
        return [text_of(completion) for completion in source.completions]
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    return [str(tokenizer.decode(token_ids, skip_special_tokens=True)) for token_ids in ids]


def truncated(source: Scored, trainer: Any, made: Generation, spans: Spans) -> list[bool]:
    """Per span: its row is as long as allowed and ends in one of its tokens, which ends nothing."""
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    ends = {*getattr(trainer, "eos_token_ids", ()), tokenizer.eos_token_id, tokenizer.pad_token_id}
    limit = trainer.max_completion_length or 0
    cut = [len(ids) >= limit and (not len(ids) or ids[-1] not in ends) for ids in source.ids]
    if made.masks is None:
        return cut
    last = [mask[-1] if mask else -1 for mask in made.masks]
    pairs = zip(spans.rows, spans.roles, strict=True)
    return [cut[row] and last[row] == role for row, role in pairs]


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
    spans = made.spans(range(len(made.roles)), out["completion_ids"].shape[1])
    spoken, cut_off = (
        texts(source, out, spans, trainer=trainer),
        truncated(source, trainer, made, spans),
    )
    known = [span for span, role in enumerate(spans.roles) if role >= 0]
    rows = [spans.rows[span] for span in known]
    names = [prompt_name(source.prompts[row]) for row in rows]
    roles = [workflow.role_names[spans.roles[span]] for span in known]
    cut = [cut_off[span] for span in known]
    token_ids = written(source, out, spans) or source.ids
    tokens = [len(token_ids[span]) for span in known]
    advantages = out["advantages"].float()
    means = (advantages if advantages.ndim == 1 else advantages.mean(dim=1)).tolist()
    picks = sampler.pick(
        made.step + 1,
        roles,
        tokens=tokens,
        prompts=names,
        advantages=[means[row] for row in rows],
        truncated=cut,
    )
    return [
        Sample(
            step=made.step + 1,
            role=roles[pick.row],
            text=spoken[known[pick.row]],
            slot=0 if made.slots is None else made.slots[rows[pick.row]],
            policy=workflow.policy_of(roles[pick.row]),
            prompt=names[pick.row],
            episode=f"{made.number}-{rows[pick.row]}",
            prompt_text=text_of(source.prompts[rows[pick.row]]),
            tokens=tokens[pick.row],
            finish="length" if cut[pick.row] else "stop",
            reward=float(source.reward_B[rows[pick.row]]),
            advantage=means[rows[pick.row]],
            flags=pick.flags,
        )
        for pick in picks
    ]


def column(values: Sequence[int], device: torch.device) -> Tensor:
    """Whole numbers as an int64 tensor on the device, without waiting for what it is busy with."""
    return torch.tensor(values, dtype=torch.int64).to(device, non_blocking=True)


def text_of(message: Any) -> str:
    """A prompt or completion as one text; messages are joined by line breaks."""
    if isinstance(message, str):
        return message
    return "\n".join(_content(part.get("content")) for part in message)


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
    spans = made.spans(rows, mask_BC.shape[1])
    slots = None if made.slots is None else tuple(made.slots[rows[place]] for place in spans.rows)
    return Rows(
        made,
        spans,
        slots,
        ids_BL=spans.of(ids_BL),
        attention_BL=spans.of(attention_BL),
        mask_BC=spans.own(mask_BC),
        logp_BC=spans.of(logp_BC.detach()),
    )


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

    def of_spans(name: str) -> Tensor | None:
        values = inputs.get(name)
        return None if values is None else rows.spans.of(values)

    return RoleBatch.from_padded(
        workflow,
        role=column(rows.roles, rows.logp_BC.device),
        mask=rows.mask_BC,
        slot=rows.slots,
        advantage=of_spans("advantages"),
        logp=rows.logp_BC,
        old_logp=of_spans("old_per_token_logps") if OLD not in inputs else of_spans(OLD),
        rollout_logp=of_spans("sampling_per_token_logps"),
        reference_logp=of_spans("ref_per_token_logps")
        if REFERENCE not in inputs
        else of_spans(REFERENCE),
        entropy=None if forward[1] is None else rows.spans.of(forward[1].detach()),
        temperature=float(trainer.temperature),
        rollout_temperature=engine,
        clip=(float(trainer.epsilon_low), float(trainer.epsilon_high)) if clips else None,
        steps_between=int(trainer.state.global_step) - rows.made.step,
        outputs=False,
    )
