"""What a trainer hands over: token tensors of one batch of spans, as they lie on the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roledrift.errors import CaptureError, ConfigError
from roledrift.spans import Kind
from roledrift.workflow import Workflow

SpanColumn = Tensor | NDArray[Any] | Sequence[int] | Sequence[float] | Sequence[bool] | None
"""One value per span. Anything but a tensor is copied to the device of the mask."""

WHOLE_COLUMNS = ("slot_B", "turn_B", "prompt_B", "episode_B", "group_B")
TOKEN_COLUMNS = (
    "logp_BT",
    "old_logp_BT",
    "rollout_logp_BT",
    "reference_logp_BT",
    "before_logp_BT",
    "entropy_BT",
)
BEHIND: dict[Kind, str] = {
    "rollout": "rollout_logp_BT",
    "old": "old_logp_BT",
    "update": "before_logp_BT",
    "reference": "reference_logp_BT",
}
"""For each kind of comparison, the column that ``logp_BT`` is compared with."""


class Columns(TypedDict, total=False):
    """Keyword arguments of :meth:`RoleBatch.from_padded`: its attributes without their shape."""

    slot: SpanColumn
    turn: SpanColumn
    prompt: SpanColumn
    episode: SpanColumn
    group: SpanColumn
    truncated: SpanColumn
    reward: SpanColumn
    advantage: SpanColumn
    logp: Tensor | None
    old_logp: Tensor | None
    rollout_logp: Tensor | None
    reference_logp: Tensor | None
    before_logp: Tensor | None
    entropy: Tensor | None
    temperature: float | None
    rollout_temperature: float | None
    clip: tuple[float, float] | None
    steps_between: int | None
    outputs: bool
    text: Sequence[str | None] | None


@dataclass(frozen=True, slots=True, eq=False)
class RoleBatch:
    """Padded token tensors of ``B`` spans with ``T`` token positions, all on one device.

    Nothing is copied and no value is read here: shapes, dtypes and devices are checked, values only
    on the device, later. Masked positions may hold anything, also NaN.

    Attributes:
        roles: Role names in registry order.
        role_B: Index into ``roles``. Rows with another index are dropped and counted as a fault.
        mask_BT: Non-zero at trainable tokens.
        slot_B: Copy of the role within its episode; likewise ``turn_B``, ``prompt_B`` (number of
            the problem), ``episode_B`` and ``group_B`` (advantage group).
        truncated_B: True where the length limit cut the span.
        reward_B: Reward of the span.
        advantage_B: Advantage, ``(B,)``, or per token ``(B, T)``.
        logp_BT: Log-probabilities in nats of the tokens under the policy being trained, now.
        old_logp_BT: The same under the policy at the start of the iteration (PPO ratio).
        rollout_logp_BT: The same as the rollout engine recorded them.
        reference_logp_BT: The same under a frozen reference model.
        before_logp_BT: The same before the optimizer step, where ``logp_BT`` is after it.
        entropy_BT: Entropy of the policy at each token, in nats.
        temperature: Sampling temperature of all log-probabilities but the rollout engine's.
        rollout_temperature: That of ``rollout_logp_BT``.
        clip: Clip range ``(low, high)`` of the PPO ratio, for example ``(0.2, 0.28)``.
        steps_between: Optimizer steps between ``old``, ``rollout`` or ``before`` and ``logp``.
        outputs: True if the spans count as new outputs. False for a pass that scores spans that
            were already handed over: lengths, rewards and advantages are then not counted again.
        text: Decoded text, None where it was not kept.

    Raises:
        CaptureError: With every misfit found.
    """

    roles: tuple[str, ...]
    role_B: Tensor
    mask_BT: Tensor
    slot_B: Tensor | None = None
    turn_B: Tensor | None = None
    prompt_B: Tensor | None = None
    episode_B: Tensor | None = None
    group_B: Tensor | None = None
    truncated_B: Tensor | None = None
    reward_B: Tensor | None = None
    advantage_B: Tensor | None = None
    logp_BT: Tensor | None = None
    old_logp_BT: Tensor | None = None
    rollout_logp_BT: Tensor | None = None
    reference_logp_BT: Tensor | None = None
    before_logp_BT: Tensor | None = None
    entropy_BT: Tensor | None = None
    temperature: float | None = None
    rollout_temperature: float | None = None
    clip: tuple[float, float] | None = None
    steps_between: int | None = None
    outputs: bool = True
    text: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.mask_BT.ndim != 2 or self.mask_BT.shape[1] == 0:
            raise CaptureError(
                f"mask is {tuple(self.mask_BT.shape)}: it must be (spans, token positions >= 1)"
            )
        problems = [*self._misshapen(), *self._mistyped(), *self._wrong_scalars()]
        if problems:
            raise CaptureError("batch of spans: " + "; ".join(problems))

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name in ("role_B", "truncated_B", "reward_B", "advantage_B", *WHOLE_COLUMNS):
            value = getattr(self, name)
            if value is not None:
                yield name, value
        for name in TOKEN_COLUMNS:
            value = getattr(self, name)
            if value is not None:
                yield name, value

    def _misshapen(self) -> Iterator[str]:
        mask_shape = tuple(self.mask_BT.shape)
        for name, value in self._tensors():
            shape = tuple(value.shape)
            allowed = [mask_shape] if name.endswith("_BT") else [mask_shape[:1]]
            if name == "advantage_B":
                allowed.append(mask_shape)
            if shape not in allowed:
                wanted = " or ".join(str(dimensions) for dimensions in allowed)
                yield f"{name} is {shape}, it must be {wanted} to fit mask {mask_shape}"
            if value.device != self.mask_BT.device:
                yield f"{name} is on {value.device}, mask on {self.mask_BT.device}: use one device"
        if self.text is not None and len(self.text) != mask_shape[0]:
            yield f"text has {len(self.text)} entries for {mask_shape[0]} spans"

    def _mistyped(self) -> Iterator[str]:
        if self.mask_BT.is_complex():
            yield f"mask is {self.mask_BT.dtype}, it must be bool, integer or float"
        for name, value in self._tensors():
            number = value.is_floating_point() or value.is_complex()
            if name == "role_B" or name in WHOLE_COLUMNS:
                if number or value.dtype == torch.bool:
                    yield f"{name} is {value.dtype}, it must be an integer type"
            elif name == "truncated_B":
                if number:
                    yield f"{name} is {value.dtype}, it must be bool"
            elif name in TOKEN_COLUMNS and not value.is_floating_point():
                yield f"{name} is {value.dtype}, it must be a float type"
            elif value.is_complex():
                yield f"{name} is {value.dtype}, it must be real"

    def _wrong_scalars(self) -> Iterator[str]:
        for kind, name in BEHIND.items():
            if getattr(self, name) is not None and self.logp_BT is None:
                yield f"{name} is there but logp_BT is not: {kind!r} compares the two, give both"
        for name in ("temperature", "rollout_temperature"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                yield f"{name} is {value!r}, it must be a finite number > 0, or None if unknown"
        if self.clip is not None:
            pair = tuple(self.clip)
            if len(pair) != 2 or not all(math.isfinite(bound) and bound >= 0 for bound in pair):
                yield f"clip is {self.clip!r}, it must be two numbers >= 0 such as (0.2, 0.28)"
        if self.steps_between is not None and self.steps_between < 0:
            yield f"steps_between is {self.steps_between}, it must be >= 0, or None if unknown"

    @classmethod
    def from_padded(
        cls,
        workflow: Workflow,
        *,
        role: Tensor | Sequence[str],
        mask: Tensor,
        **columns: Unpack[Columns],
    ) -> RoleBatch:
        """A batch from padded tensors.

        Args:
            workflow: Names the roles.
            role: Registry indices ``(B,)``, or one role name per span.
            mask: Non-zero at trainable tokens, ``(B, T)``.
            **columns: See :class:`Columns`; the attributes of the batch without ``_B`` and ``_BT``.

        Raises:
            CaptureError: For an unknown role name or column, or tensors that do not fit together.
        """
        return cls(
            roles=workflow.role_names,
            role_B=_role_column(workflow, role, mask.device),
            mask_BT=mask,
            **_fields(dict(columns), mask.device),
        )

    @classmethod
    def rescored(
        cls,
        workflow: Workflow,
        *,
        role: Tensor | Sequence[str],
        mask: Tensor,
        before: Tensor,
        after: Tensor,
        steps: int = 1,
        **columns: Unpack[Columns],
    ) -> RoleBatch:
        """Spans that were scored again after the optimizer step: the comparison ``update``.

        Only comparisons are measured; the spans count neither as outputs nor toward perplexity,
        because they are a few rows that were seen before.

        Args:
            workflow: Names the roles.
            role: Registry indices ``(B,)``, or one role name per span.
            mask: Non-zero at trainable tokens, ``(B, T)``.
            before: Log-probabilities before the step, ``(B, T)``, in nats.
            after: Log-probabilities after it.
            steps: Optimizer steps between the two.
            **columns: What else is known: ``slot``, ``temperature`` (of all log-probabilities), or
                ``reference_logp``, which is then compared with ``after``.

        Raises:
            CaptureError: As for :meth:`from_padded`.
        """
        columns |= {
            "logp": after, "before_logp": before, "steps_between": steps, "outputs": False
        }  # fmt: skip
        return cls.from_padded(workflow, role=role, mask=mask, **columns)


_FIELDS: dict[str, str] = {
    column.removesuffix("_BT").removesuffix("_B"): column
    for column in (
        *("truncated_B", "reward_B", "advantage_B", *WHOLE_COLUMNS, *TOKEN_COLUMNS),
        *("temperature", "rollout_temperature", "clip", "steps_between", "outputs", "text"),
    )
}


def _fields(columns: dict[str, Any], device: torch.device) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in columns.items():
        if name not in _FIELDS:
            near = get_close_matches(name, _FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {sorted(_FIELDS)}"
            raise CaptureError(f"a batch of spans has no column {name!r}; {hint}")
        field = _FIELDS[name]
        if field == "text" and value is not None:
            value = tuple(value)
        elif field.endswith("_B") and value is not None and not isinstance(value, Tensor):
            value = _column(name, value, device)
        fields[field] = value
    return fields


def _column(name: str, values: Any, device: torch.device) -> Tensor:
    try:
        column = torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CaptureError(f"{name} is not a column of numbers: {error}") from None
    if device.type == "mps" and column.dtype == torch.float64:
        column = column.to(torch.float32)
    return column.to(device)


def _role_column(workflow: Workflow, role: Tensor | Sequence[str], device: torch.device) -> Tensor:
    if isinstance(role, Tensor):
        return role
    try:
        indices = [workflow.index(name) for name in role]
    except ConfigError as error:
        raise CaptureError(str(error)) from None
    return torch.tensor(indices, dtype=torch.int64).to(device)
