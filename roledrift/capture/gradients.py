"""Gradients of roles that share a policy, exact and in the backward pass that happens anyway.

Each sequence is one role's span, and the weight gradient of a LoRA layer is a sum over tokens, so
the part of it that belongs to a role is the same sum over that role's rows. The probe adds those
parts up per group (role, or role and slot) over the micro-batches of an optimizer step, averages
them over ranks, and hands over the matrix of their inner products: norms before clipping, cosines
and shares of gradient mass all follow from it (:mod:`roledrift.measure.coherence`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self

import torch
from torch import Tensor, distributed, nn

from roledrift.capture.gradient_store import (
    SKETCH_SIDE,
    GradientStore,
    StoreKind,
    add_over_ranks,
    fold_error,
    fold_signs,
    fold_width,
    loss_scale,
    open_store,
    rank_count,
    sum_dtype,
)
from roledrift.capture.linear_taps import (
    Ledger,
    Removal,
    Site,
    Watch,
    install_replacement,
    install_tap,
)
from roledrift.capture.lora_layers import (
    Coverage,
    Part,
    explain_uncovered,
    find_parts,
    is_compiled,
    policies_of,
    trained_adapters,
)
from roledrift.capture.row_groups import GroupRegistry, Labels
from roledrift.config import Config
from roledrift.errors import AttachError
from roledrift.records import GramRecord
from roledrift.workflow import Workflow

_LOG = logging.getLogger("roledrift")

Capture = Literal["tap", "replace"]

_NOTES = (
    "packed sequences need attention that keeps them apart (position_ids that restart, or a "
    "block-diagonal mask): attention across them mixes their roles and is not noticed here",
    "roles that alternate inside one sequence cannot be told apart by tokens: give each role a loss"
    " and a backward of its own and use RoleOrderedGradients",
)


class RoleGradientProbe:
    """Splits the gradients of a policy by the roles that share it.

    A :class:`roledrift.protocols.GradientSource`. Typical use::

        probe = RoleGradientProbe(workflow)
        print(probe.attach(model).describe())
        for step in range(steps):
            for batch in micro_batches:
                with probe.groups(batch.role_B, batch.slot_B):
                    loss(model, batch).backward()
            optimizer.step(); optimizer.zero_grad()
            records = probe.drain_gradients()      # or monitor.attach(probe)

    A micro-batch that holds a single group costs next to nothing to measure, whatever the capture;
    one that mixes groups costs one more weight gradient per layer (``"tap"``).

    It needs the loss normaliser to be the same for all roles (as it is when the losses are summed
    into one ``.grad``), and one :meth:`drain_gradients` per optimizer step on every rank.

    Args:
        workflow: Roles, slots and policies.
        every: Measure every this many optimizer steps; in the others hooks return at once.
        capture: ``"tap"`` leaves training bit-identical. ``"replace"`` costs one matrix product
            less per layer but adds the weight gradient in another order (last bits differ).
        store: ``"fold"`` (at most 1 MiB, relative error stated), ``"full"`` (exact, one copy of the
            trainable weights per group) or ``"sketch"`` (any linear layer, also in full
            fine-tuning; larger stated error).
        slots: A group per slot (coarsen with :func:`roledrift.measure.coherence.by_role`).
        halves: Also split slots by problem (:func:`roledrift.detect.by_problem.by_problem`).
        reduction: How the host combines gradients over ranks.

    Raises:
        ValueError: For a word or number that is none of these.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        every: int = 4,
        capture: Capture = "tap",
        store: StoreKind = "fold",
        slots: bool = True,
        halves: bool = False,
        reduction: Literal["mean", "sum"] = "mean",
    ) -> None:
        if capture not in ("tap", "replace") or store not in ("fold", "full", "sketch"):
            raise ValueError(
                f"capture={capture!r}, store={store!r}: capture is 'tap' or 'replace', store is "
                "'fold', 'full' or 'sketch'"
            )
        if capture == "replace" and store == "sketch":
            raise ValueError("a sketch never forms the weight gradient: use capture='tap' with it")
        if every < 1:
            raise ValueError(f"every={every}: measure every 1 or more optimizer steps")
        self.workflow = workflow
        self.registry = GroupRegistry.of(workflow, slots=slots, halves=halves)
        self._every, self._capture, self._kind = every, capture, store
        self._factor = 1
        self._reduction = reduction
        self._step = 0
        self._watch = Watch()
        self._ledgers: list[Ledger] = []
        self._handles: list[Removal] = []
        self._faults: Counter[str] = Counter()
        self._scaler: Any = None
        self._scale: Tensor | None = None

    def attach(
        self, model: nn.Module, *, adapters: Mapping[str, str] | None = None, scaler: Any = None
    ) -> Coverage:
        """Install the probe. Attaching again first detaches.

        Args:
            model: With PEFT LoRA layers; may be wrapped in DDP or FSDP already.
            adapters: Adapter name to policy name, where they differ. A single trained adapter is
                the workflow's single policy whatever its name.
            scaler: A ``torch.amp.GradScaler``, to take its scale out.

        Returns:
            What is observed and what is not.

        Raises:
            AttachError: If the model is compiled, or nothing in it can be observed.
        """
        self.detach()
        if is_compiled(model):
            raise AttachError(
                "the model is compiled: a traced graph runs no hooks, and hooks that are there "
                "before break it into pieces at every layer. Use RoleOrderedGradients, which only "
                "reads .grad"
            )
        parts = find_parts(model, plain=self._kind == "sketch")
        policies = policies_of(trained_adapters(parts), self.workflow, adapters)
        parts = [part for part in parts if part.adapter in policies]
        if not parts:
            raise AttachError(
                f"{type(model).__name__} has no trained LoRA linear layer to observe: use "
                "store='sketch' for linear layers that are trained in full, or RoleOrderedGradients"
            )
        self._scaler = scaler
        self._watch = Watch(measuring=self._step % (self._every * self._factor) == 0)
        self._install(parts, policies)
        coverage = self._coverage(model, parts, policies)
        _LOG.info("%s", coverage.describe())
        return coverage

    def _install(self, parts: Sequence[Part], policies: Mapping[str, str]) -> None:
        n_groups = len(self.registry.owners)
        ledgers = {name: Ledger(policy, n_groups) for name, policy in policies.items()}
        install = install_tap if self._capture == "tap" else install_replacement
        for part in parts:
            ledger = ledgers[part.adapter]
            site = Site(part.module, part.name, ledger, len(ledger.shapes), self._watch)
            ledger.shapes.append((part.module.out_features, part.module.in_features))
            self._handles.append(install(site))
        signs: Tensor | None = None
        if self._kind == "fold":
            signs = fold_signs(fold_width(n_groups * len(ledgers)))
        for name, ledger in ledgers.items():
            first = next(part.module.weight for part in parts if part.adapter == name)
            if signs is not None:
                # All policies share one table.
                signs = signs.to(device=first.device, dtype=sum_dtype(first.dtype))
            ledger.store = open_store(self._kind, ledger.shapes, n_groups, signs=signs, like=first)
        self._ledgers = list(ledgers.values())

    def _coverage(
        self, model: nn.Module, parts: Sequence[Part], policies: Mapping[str, str]
    ) -> Coverage:
        covered = {id(part.trained) for part in parts}
        trainable, uncovered = explain_uncovered(model, covered)
        stores = [ledger.store for ledger in self._ledgers if ledger.store is not None]
        tensors = [one for store in stores for one in store.tensors()]
        error = fold_error(tensors[0].shape[1]) if self._kind == "fold" else 0.0
        if self._kind == "sketch":
            error = 0.5 * ((1 + 2 / SKETCH_SIDE) ** 2 - 1) ** 0.5
        return Coverage(
            policies=dict(policies),
            layers=len(parts),
            covered=sum(part.module.in_features * part.module.out_features for part in parts),
            trainable=trainable,
            uncovered=uncovered,
            notes=_NOTES,
            method="exact" if self._kind == "full" else "folded",
            relative_error=error,
            buffer_bytes=sum(one.numel() * one.element_size() for one in tensors),
        )

    def set_groups(
        self, role: Labels | None, slot: Labels | None = None, *, prompt: Labels | None = None
    ) -> None:
        """Say whose rows the next forward sees; None ends it.

        Args:
            role: Registry indices or names of roles, ``(B,)``; or ``(B, T)`` per token for packed
                rows. Rows of an unknown role are left out and counted as a fault. Labels on the
                host (also of an accelerator's micro-batch) give the cheapest cut.
            slot: Slots, of the same shape.
            prompt: Numbers of the problems, of the same shape; needed with ``halves``. A problem
                has the same number in every slot and on every rank.

        Raises:
            CaptureError: If shapes do not fit, or slots or problems are missing.
        """
        if not self.measuring:
            return
        self._watch.label(None if role is None else self.registry.rows(role, slot, prompt=prompt))
        if self._scale is None:
            self._scale = loss_scale(self._scaler)

    @contextmanager
    def groups(
        self, role: Labels, slot: Labels | None = None, *, prompt: Labels | None = None
    ) -> Iterator[Self]:
        """:meth:`set_groups` around a forward; its backward may come later."""
        self.set_groups(role, slot, prompt=prompt)
        try:
            yield self
        finally:
            self.set_groups(None)

    def drain_gradients(self) -> Sequence[GramRecord]:
        """Inner products of the step that ends, one record per policy that was updated.

        The one place where the device is waited for. Every rank calls it once per optimizer step.

        Returns:
            Empty on steps that are not measured, and for a policy in which something was seen that
            would make the numbers wrong; see :meth:`faults`.
        """
        records: list[GramRecord] = []
        if self.measuring:
            try:
                records = self._read()
            finally:
                self._forget()
        self._step += 1
        self._watch.measuring = self._step % (self._every * self._factor) == 0
        return records

    def stretch(self, factor: int) -> None:
        """Measure ``factor`` times more rarely than ``every`` says, from the next drain on."""
        self._factor = factor

    def faults(self) -> dict[str, int]:
        """What went wrong since the last call, with how often."""
        found, self._faults = dict(self._faults), Counter()
        return found

    def detach(self) -> None:
        """Take everything out of the model again."""
        for handle in self._handles:
            handle.remove()
        self._handles = []
        self._ledgers = []
        self._forget()

    @property
    def measuring(self) -> bool:
        """Whether the present step is measured."""
        return self._watch.measuring and bool(self._handles)

    def _forget(self) -> None:
        for ledger in self._ledgers:
            ledger.clear()
        self._watch.history.clear()
        self._watch.rows = None
        self._watch.unlabelled = 0
        self._scale = None

    def _read(self) -> list[GramRecord]:
        n_ranks, notes = rank_count(), [self._tally(ledger) for ledger in self._ledgers]
        if n_ranks > 1:
            joint = torch.stack(notes)
            distributed.all_reduce(joint)
            notes = list(joint.unbind(0))
        if self._watch.unlabelled:
            self._faults["forward with gradients outside of groups()"] += 1
        scale = 1.0 if self._scale is None else float(self._scale)
        records = []
        for ledger, note in zip(self._ledgers, notes, strict=True):
            *counts, unknown, outside, misfits = note.tolist()
            self._count(ledger.policy, unknown, outside, misfits)
            if not any(counts) or ledger.store is None:
                continue
            add_over_ranks(ledger.store)
            mean = self._reduction == "mean"
            factor = (1.0 / n_ranks if mean else 1.0) / scale
            if not misfits:
                records.append(self._record(ledger, ledger.store, counts, factor))
        return [one for one in records if one is not None]

    def _tally(self, ledger: Ledger) -> Tensor:
        """Counts of groups, then of rows of unknown roles, strange slots and misfits."""
        store = ledger.store
        assert store is not None
        device = store.tensors()[0].device
        parts = [
            torch.zeros(ledger.n_groups) if ledger.counts is None else ledger.counts,
            torch.zeros(2) if ledger.strange is None else ledger.strange,
            torch.tensor([ledger.misfits]),
        ]
        return torch.cat([part.to(device, torch.float64) for part in parts])

    def _count(self, policy: str, unknown: float, outside: float, misfits: float) -> None:
        for what, times in (
            ("role gradients: unknown role", unknown),
            ("role gradients: slot outside of the role's slots", outside),
            (f"role gradients: rows do not fit their labels in {policy}", misfits),
        ):
            if times:
                self._faults[what] += int(times)

    def _record(
        self, ledger: Ledger, store: GradientStore, counts: Sequence[float], factor: float
    ) -> GramRecord | None:
        seen = [index for index, count in enumerate(counts) if count]
        products = (store.gram() * factor**2).cpu()
        if self._scale is not None and not bool(products[seen][:, seen].isfinite().all()):
            self._faults["role gradients: overflow, the scaler skips this step"] += 1
            return None
        labels, whole = self.registry.whole(products, seen)
        return GramRecord(
            policy=ledger.policy,
            labels=labels,
            products=whole,
            method="exact" if self._kind == "full" else "folded",
            relative_error=store.relative_error(),
            halves=self.registry.halves(products, seen),
        )


def attach_gradients(
    model: nn.Module,
    workflow: Workflow,
    config: Config,
    *,
    slots: bool = True,
    halves: bool = False,
    scaler: Any = None,
) -> tuple[RoleGradientProbe | None, str]:
    """A probe as the configuration asks for it, and a sentence on what it covers for the header.

    Args:
        model: With PEFT LoRA layers.
        workflow: Roles, slots and policies.
        config: Its tier and ``gradients`` section.
        slots: The host knows the slot of each row.
        halves: And the problem.
        scaler: A ``torch.amp.GradScaler``, if one is used.

    Returns:
        None and the reason if nothing is to be or can be measured.
    """
    settings = config.gradients
    if config.tier == "economy" or not settings.every:
        return None, "not measured: switched off (tier or gradients.every)"
    probe = RoleGradientProbe(
        workflow,
        every=1 if config.tier == "full" else settings.every,
        capture=settings.capture,
        store=settings.store,
        slots=slots,
        halves=halves,
    )
    try:
        return probe, probe.attach(model, scaler=scaler).describe()
    except AttachError as error:
        return None, f"not measured: {error}"
