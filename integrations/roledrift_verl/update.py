"""One update of the actor, seen from the trainer: whose rows go in, and what it did to them.

Both of verl's batches can do the same few things here, which is all that the rest asks of them.
Shape suffixes: B rows, T response positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from roledrift.capture.batch import RoleBatch
from roledrift.records import GramRecord
from roledrift.workflow import Workflow
from roledrift_verl.batch import FIELDS, Rows, Sampling, from_data_proto, from_queue
from roledrift_verl.wire import COLUMNS, FILLING, ORDER, PROBLEM, ROLE, SLOT, Order


class Held(Protocol):
    """The batch of an update, in the trainer."""

    @property
    def keys(self) -> tuple[str, ...]:
        """What the rows are called where they are kept elsewhere; empty if they are not."""
        ...

    def read(self) -> Rows:
        """Its rows, without those that only fill it up."""
        ...

    def send(self, columns: Mapping[str, Tensor], order: Order) -> None:
        """Let the workers see these columns and the order with the rows."""
        ...

    def take_back(self) -> None:
        """Leave the batch as it was."""
        ...

    def score(self, rows: Sequence[int]) -> Tensor:
        """Log-probabilities of some rows' responses under the actor as it is now, ``(B, T)``.

        Args:
            rows: Places in the batch as it is, filling included.
        """
        ...

    def __len__(self) -> int:
        """Rows, filling included."""
        ...


class Queued:
    """V1: the rows are in the TransferQueue, the batch names their keys.

    Args:
        module: ``verl.trainer.ppo.v1.trainer_base``.
        trainer: verl's.
        batch: A ``KVBatchMeta``.
    """

    def __init__(self, module: Any, trainer: Any, batch: Any) -> None:
        self._module, self._trainer, self._batch = module, trainer, batch

    def __len__(self) -> int:
        return len(self._batch.keys)

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`Held`."""
        return tuple(self._batch.keys)

    def read(self) -> Rows:
        """See :class:`Held`."""
        batch = self._batch
        data = self._module.tq.kv_batch_get(
            keys=batch.keys, partition_id=batch.partition_id, select_fields=list(FIELDS)
        )
        return from_queue(data, batch.keys, batch.tags)

    def send(self, columns: Mapping[str, Tensor], order: Order) -> None:
        """See :class:`Held`."""
        batch = self._batch
        fields = self._module.TensorDict(dict(columns), batch_size=len(batch.keys))
        self._module.tq.kv_batch_put(
            keys=batch.keys, partition_id=batch.partition_id, fields=fields
        )
        if batch.fields is not None:  # else the workers are handed every field that there is
            batch.fields = [*batch.fields, *columns]
        batch.extra_info[ORDER] = order

    def take_back(self) -> None:
        """See :class:`Held`."""
        self._batch.extra_info.pop(ORDER, None)
        if self._batch.fields is not None:
            self._batch.fields = [field for field in self._batch.fields if field not in COLUMNS]

    def score(self, rows: Sequence[int]) -> Tensor:
        """See :class:`Held`."""
        batch, module = self._batch, self._module
        config = self._trainer.config.actor_rollout_ref
        keys = [batch.keys[row] for row in rows]
        some = type(batch)(
            keys=keys,
            tags=[batch.tags[row] for row in rows],
            partition_id=batch.partition_id,
            fields=None if batch.fields is None else list(batch.fields),
            extra_info={
                "calculate_entropy": False,
                "compute_loss": False,
                "temperature": config.rollout.temperature,
            },
        )
        self._trainer.actor_rollout_wg.compute_log_prob(some)
        data = module.tq.kv_batch_get(
            keys=keys, partition_id=batch.partition_id, select_fields=["log_probs", "response_mask"]
        )
        scored = module.response_from_nested(data["log_probs"], data["response_mask"])
        padded: Tensor = scored.to_padded_tensor(0)
        return padded


class Padded:
    """Up to verl 0.8: the batch is a ``DataProto``.

    Args:
        trainer: verl's.
        batch: The ``DataProto``.
        score: verl's ``_compute_old_log_prob``, unwatched.
    """

    def __init__(self, trainer: Any, batch: Any, score: Any) -> None:
        self._trainer, self._batch, self._score = trainer, batch, score

    def __len__(self) -> int:
        return len(self._batch)

    @property
    def keys(self) -> tuple[str, ...]:
        """See :class:`Held`."""
        return ()

    def read(self) -> Rows:
        """See :class:`Held`."""
        return from_data_proto(self._batch)

    def send(self, columns: Mapping[str, Tensor], order: Order) -> None:
        """See :class:`Held`."""
        for name, column_B in columns.items():
            self._batch.batch[name] = column_B
        self._batch.meta_info[ORDER] = order

    def take_back(self) -> None:
        """See :class:`Held`."""
        self._batch.meta_info.pop(ORDER, None)
        for name in COLUMNS:
            if name in self._batch.batch.keys():  # noqa: SIM118 - a TensorDict
                self._batch.batch.pop(name)

    def score(self, rows: Sequence[int]) -> Tensor:
        """See :class:`Held`."""
        some = self._batch.select_idxs(list(rows))
        result = self._score(self._trainer, some)
        scored: Tensor = (result[0] if isinstance(result, tuple) else result).batch["old_log_probs"]
        return scored


def columns_of(
    workflow: Workflow, rows: Rows, who: Sequence[tuple[str, int | None]], *, total: int
) -> tuple[dict[str, Tensor], bool, bool]:
    """What the workers are told of each row.

    Args:
        workflow: Gives the registry of roles.
        rows: Rows of the update.
        who: Role and slot per row.
        total: Rows of the batch, filling included.

    Returns:
        The columns of :mod:`roledrift_verl.wire`, each ``(total,)``; whether all slots, and
        whether all problems are known.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    single = {role.name for role in workflow.roles if role.slots < 2}
    columns = {name: torch.zeros(total, dtype=torch.int64) for name in COLUMNS}
    columns[ROLE].fill_(FILLING)
    uids = [facts.get("uid") for facts in rows.named]
    numbers = {uid: number for number, uid in enumerate(dict.fromkeys(map(str, uids)))}
    for place, (role, slot), uid in zip(rows.places, who, uids, strict=True):
        columns[ROLE][place] = index.get(role, -1)
        columns[SLOT][place] = slot or 0
        columns[PROBLEM][place] = numbers[str(uid)]
    slots = all(slot is not None or role in single for role, slot in who if role in index)
    return columns, slots, None not in uids


def choose(
    roles: Sequence[str], who: Sequence[tuple[str, int | None]], *, per_role: int, multiple: int
) -> list[int]:
    """Rows to score again: the first ``per_role`` of each role, filled up with any others.

    Args:
        roles: Names in registry order.
        who: Role and slot per row.
        per_role: Rows per role.
        multiple: verl deals rows to ranks and micro-batches that must all be full.

    Returns:
        Their numbers; empty if there are not enough rows to fill up with.
    """
    first: list[int] = []
    for role in roles:
        first += [row for row, (name, _) in enumerate(who) if name == role][:per_role]
    wanted = math.ceil(len(first) / multiple) * multiple
    taken = set(first)
    rest = [row for row in range(len(who)) if row not in taken]
    chosen = sorted([*first, *rest][:wanted])
    return chosen if len(chosen) == wanted else chosen[: len(chosen) // multiple * multiple]


def multiple_of(trainer: Any) -> int:
    """Rows that a scoring must be a multiple of, so that verl can deal them out."""
    rollout = trainer.config.actor_rollout_ref.rollout
    known: Mapping[str, Sequence[int]] = getattr(trainer.actor_rollout_wg, "_dispatch_info", {})
    ranks = max(known.get("actor", [0])) + 1
    if rollout.get("log_prob_use_dynamic_bsz", False):
        return ranks
    return ranks * int(rollout.get("log_prob_micro_batch_size_per_gpu", None) or 1)


def steps_of(trainer: Any, rows: int) -> int:
    """Optimizer steps of an update over ``rows`` rows."""
    config = trainer.config.actor_rollout_ref
    size = int(config.actor.ppo_mini_batch_size) * int(config.rollout.n)
    return max(rows // size, 1) * int(config.actor.ppo_epochs)


def replays_routing(trainer: Any) -> bool:
    """Whether verl records which experts a scoring used: another scoring would be recorded too."""
    actor = trainer.config.actor_rollout_ref.actor
    modes = [
        ((actor.get(name, None) or {}).get("router_replay", None) or {}).get("mode", "disabled")
        for name in ("megatron", "veomni")
    ]
    return any(mode != "disabled" for mode in modes)


def clip_of(trainer: Any) -> tuple[float, float] | None:
    """Clip range of the ratio; None for losses that clip something else."""
    actor = trainer.config.actor_rollout_ref.actor
    mode = (actor.get("policy_loss", None) or {}).get("loss_mode", "vanilla")
    if mode != "vanilla":
        return None
    both = actor.get("clip_ratio", 0.2)
    low, high = (actor.get(f"clip_ratio_{side}", None) for side in ("low", "high"))
    return float(both if low is None else low), float(both if high is None else high)


def compared(
    workflow: Workflow,
    rows: Rows,
    who: Sequence[tuple[str, int | None]],
    *,
    chosen: Sequence[int],
    scores: tuple[Tensor, Tensor],
    how: Sampling,
    steps: int,
) -> RoleBatch:
    """Rows that were scored before and after the update, as a batch.

    Args:
        workflow: Gives the registry of roles.
        rows: Rows of the update.
        who: Role and slot per row.
        chosen: Numbers of the rows scored.
        scores: Log-probabilities before and after, of these rows, padded on the right.
        how: How the rows were sampled.
        steps: Optimizer steps between the two.
    """
    index = {name: number for number, name in enumerate(workflow.role_names)}
    known = [place for place, row in enumerate(chosen) if who[row][0] in index]
    known_rows = [chosen[place] for place in known]
    mask_BT = rows.tokens["response_mask"][known_rows] != 0
    width = min(mask_BT.shape[1], *(score.shape[1] for score in scores))
    before_BT, after_BT = (score[known, :width].cpu() for score in scores)
    return RoleBatch.rescored(
        workflow,
        role=torch.tensor([index[who[row][0]] for row in known_rows], dtype=torch.int64),
        mask=mask_BT[:, :width].cpu(),
        before=before_BT,
        after=after_BT,
        steps=steps,
        temperature=how.temperature,
    )


class WorkerGradients:
    """Gradients that came with the workers' reports; a ``GradientSource``."""

    def __init__(self) -> None:
        self.factor = 1
        self._arrived: dict[str, GramRecord] = {}

    def add(self, gradients: Sequence[GramRecord]) -> None:
        """Those of an update; all ranks say the same."""
        self._arrived |= {gradient.policy: gradient for gradient in gradients}

    def drain_gradients(self) -> Sequence[GramRecord]:
        """What came since the last call."""
        drained, self._arrived = list(self._arrived.values()), {}
        return drained

    def cost_ms(self) -> float:
        """Not known here: the workers do it."""
        return 0.0

    def stretch(self, factor: int) -> None:
        """Ask the workers for gradients more rarely, from the next update on."""
        self.factor = factor

    def faults(self) -> dict[str, int]:
        """They come with the reports."""
        return {}
