"""Gradients of roles that share a policy, exact and in the backward pass that happens anyway.

Each sequence is one role's span, and the weight gradient of a LoRA layer is a sum over tokens, so
the part of it that belongs to a role is the same sum over that role's rows. The probe adds those
parts up per group (role, or role and slot) over the micro-batches of an optimizer step, averages
them over ranks, and hands over the matrix of their inner products: norms before clipping, cosines
and shares of gradient mass all follow from it (:mod:`roledrift.gram`).
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Self

import torch
from torch import Tensor, distributed, nn
from torch.utils.hooks import RemovableHandle

from roledrift.capture.closure import NO_LAYER, Closing, Closure
from roledrift.capture.fold import fold_signs, fold_width
from roledrift.capture.following import Followed, follow
from roledrift.capture.gradient_store import (
    SKETCH_SIDE,
    StoreKind,
    add_over_ranks,
    loss_scale,
    open_store,
    rank_count,
    sum_dtype,
)
from roledrift.capture.linear_taps import Accumulator, Site, Watch, install_tap, tells_backwards
from roledrift.capture.lora_layers import (
    LIMITS,
    Coverage,
    Part,
    explain_uncovered,
    find_parts,
    is_compiled,
    policies_of,
    trained_adapters,
)
from roledrift.capture.row_groups import GroupRegistry, Labels
from roledrift.errors import AttachError
from roledrift.records import GramRecord
from roledrift.workflow import Workflow

_LOG = logging.getLogger("roledrift")


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

    Training stays bit-identical. In a step that is measured, each layer costs one more weight
    gradient; in any other step nothing is in the model. Every record says whether its groups add up
    to ``.grad`` and how much of the gradient's norm they cover (:mod:`roledrift.capture.closure`).

    It needs the loss normaliser to be the same for all roles (as it is when the losses are summed
    into one ``.grad``), and one :meth:`drain_gradients` per optimizer step on every rank.

    Args:
        workflow: Roles, slots and policies.
        every: Measure every this many optimizer steps; in the others hooks return at once.
        store: ``"fold"`` (at most 1 MiB, on a GPU 32 MiB more; error stated), ``"full"``
            (exact, one copy of the trainable weights per group) or ``"sketch"`` (any linear layer,
            also in full fine-tuning; larger stated error).
        slots: A group per slot (coarsen with :func:`roledrift.gram.by_role`).
        halves: Also split slots by problem (:func:`roledrift.detect.by_problem.by_problem`).
        reduction: How the host combines gradients over ranks.
    """

    def __init__(
        self,
        workflow: Workflow,
        *,
        every: int = 4,
        store: StoreKind = "fold",
        slots: bool = True,
        halves: bool = False,
        reduction: Literal["mean", "sum"] = "mean",
    ) -> None:
        if store not in ("fold", "full", "sketch"):
            raise ValueError(f"store={store!r}: store is 'fold', 'full' or 'sketch'")
        if every < 1:
            raise ValueError(f"every={every}: measure every 1 or more optimizer steps")
        self.workflow = workflow
        self.registry = GroupRegistry.of(workflow, slots=slots, halves=halves)
        self._every, self._kind = every, store
        self._factor, self._step = 1, 0
        self._reduction = reduction
        self._watch = Watch()
        self._ledgers: list[Accumulator] = []
        self._sites: list[Site] = []
        self._closures: list[Closure] = []
        self._parameters: list[Followed] = []
        self._handles: list[RemovableHandle] = []
        self._faults: Counter[str] = Counter()
        self._scaler: Any = None
        self._scale: Tensor | None = None
        self._warned: set[str] = set()

    def attach(
        self, model: nn.Module, *, adapters: Mapping[str, str] | None = None, scaler: Any = None
    ) -> Coverage:
        """Find what can be measured; hooks are in the model only while a step is measured.

        Attaching again first detaches. Several probes may be attached to one model.

        Args:
            model: With PEFT LoRA layers; may be wrapped in DDP or FSDP already.
            adapters: Adapter name to policy name, where they differ. A single trained adapter is
                the workflow's single policy whatever its name.
            scaler: A ``torch.amp.GradScaler``, to take its scale out.

        Returns:
            What is observed and what is not.

        Raises:
            AttachError: If the model is compiled, or nothing in it can be observed by this torch.
        """
        self.detach()
        if is_compiled(model):
            raise AttachError(
                "the model is compiled: a traced graph runs no hooks, and hooks that are there "
                "before break it into pieces at every layer. Use RoleOrderedGradients, which only "
                "reads .grad"
            )
        if not tells_backwards():
            raise AttachError(
                f"torch {torch.__version__} does not say which backward runs, which recomputed "
                "layers need. Use another torch, or RoleOrderedGradients"
            )
        parts = find_parts(model, plain=self._kind == "sketch")
        policies = policies_of(trained_adapters(parts), self.workflow, adapters)
        parts = [part for part in parts if part.adapter in policies]
        if not parts:
            raise AttachError(
                f"{type(model).__name__} trains no LoRA layers. For layers trained in full, set "
                "gradients.store='sketch', or use RoleOrderedGradients in a loop of your own"
            )
        self._scaler = scaler
        self._watch = Watch(measuring=self._step % (self._every * self._factor) == 0)
        self._open(model, parts, policies)
        coverage = self._coverage(model, parts, policies)
        _LOG.info("%s", coverage.describe())
        return coverage

    def _open(self, model: nn.Module, parts: Sequence[Part], policies: Mapping[str, str]) -> None:
        n_groups = len(self.registry.owners)
        ledgers = {name: Accumulator(policy, n_groups) for name, policy in policies.items()}
        places: dict[int, tuple[str, int]] = {}
        for part in parts:
            ledger = ledgers[part.adapter]
            index = len(ledger.shapes)
            self._sites.append(Site(part.module, part.name, ledger, index, self._watch))
            ledger.names.append(part.name)
            ledger.shapes.append((part.module.out_features, part.module.in_features))
            places[id(part.module)] = (part.adapter, index)
        signs: Tensor | None = None
        if self._kind == "fold":
            signs = fold_signs(fold_width((n_groups + 1) * len(ledgers)))
        closures = {}
        for name, ledger in ledgers.items():
            first = next(part.module.weight for part in parts if part.adapter == name)
            if signs is not None:
                # All policies share one table.
                signs = signs.to(device=first.device, dtype=sum_dtype(first.dtype))
            ledger.store = open_store(self._kind, ledger.shapes, n_groups, signs=signs, like=first)
            closures[name] = Closure(ledger, first)
        self._ledgers, self._closures = list(ledgers.values()), list(closures.values())
        self._parameters = follow(model, closures, places)

    def _coverage(
        self, model: nn.Module, parts: Sequence[Part], policies: Mapping[str, str]
    ) -> Coverage:
        covered = {id(part.trained) for part in parts}
        uncovered = explain_uncovered(model, covered)
        stores = [ledger.store for ledger in self._ledgers if ledger.store is not None]
        error = stores[0].relative_error() if self._kind == "fold" else 0.0
        if self._kind == "sketch":
            error = 0.5 * ((1 + 2 / SKETCH_SIDE) ** 2 - 1) ** 0.5
        return Coverage(
            policies=dict(policies),
            layers=len(parts),
            uncovered=uncovered,
            notes=LIMITS,
            method="exact" if self._kind == "full" else "folded",
            relative_error=error,
            buffer_bytes=sum(store.memory() for store in stores),
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
        if role is not None:
            self._hook()
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
            Empty on steps that are not measured. A policy whose numbers would be wrong is left out:
            its groups do not add up to ``.grad``, or cover less than half of the gradient's norm;
            :meth:`faults` names the reason. Where no layer was called the probe detaches.
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

    def cost_ms(self) -> float:
        """What hooks took inside the host's own passes since the last call; waits for nothing."""
        return self._watch.take_ms()

    def faults(self) -> dict[str, int]:
        """What went wrong since the last call, with how often."""
        faults, self._faults = dict(self._faults), Counter()
        return faults

    def detach(self) -> None:
        """Take everything out of the model again."""
        self._forget()
        self._sites, self._parameters, self._ledgers, self._closures = [], [], [], []

    def _hook(self) -> None:
        """Follow the layers and parameters of the model until the step is drained."""
        if not self._handles:
            self._handles = [handle for site in self._sites for handle in install_tap(site)]
        for parameter in self._parameters:
            parameter.hook()

    @property
    def measuring(self) -> bool:
        """Whether the present step is measured."""
        return self._watch.measuring and bool(self._sites)

    def _forget(self) -> None:
        for hooked in (*self._handles, *self._parameters):
            hooked.remove()
        self._handles = []
        for ledger, closure in zip(self._ledgers, self._closures, strict=True):
            ledger.clear()
            closure.clear()
        self._watch.clear()
        self._scale = None

    def _read(self) -> list[GramRecord]:
        n_ranks = rank_count()
        pairs = list(zip(self._ledgers, self._closures, strict=True))
        notes = [self._tally(*pair) for pair in pairs]
        if n_ranks > 1:
            for note in notes:
                distributed.all_reduce(note)
        results = [self._close(*pair, note) for pair, note in zip(pairs, notes, strict=True)]
        records = [result for result in results if isinstance(result, GramRecord)]
        if self._watch.unlabelled:
            self._faults["forward with gradients outside of groups()"] += 1
        if NO_LAYER in results and not records:
            self.detach()
        return records

    def _close(self, ledger: Accumulator, closure: Closure, note: Tensor) -> GramRecord | str:
        """The record of one policy, or why there is none."""
        size, store = ledger.n_groups, ledger.store
        assert store is not None
        counts, flags = note[:size].tolist(), note[size + 6 :].tolist()
        unknown, outside, misfits, unlabelled, missed, arrived = note[size : size + 6].tolist()
        self._count(ledger.policy, unknown, outside, misfits)
        if all(flags) and not (arrived or unlabelled):
            return self._refused(ledger.policy, Closing(untouched=True))
        if not any(counts):
            return "its policy had no rows"
        add_over_ranks([*store.tensors(), *closure.tensors()])
        products = store.gram().cpu()
        names = [name for name, flag in zip(ledger.names, flags, strict=True) if flag]
        checked = not missed and (arrived or names)
        closing = closure.judge(products, names) if checked else Closing()
        if names and unlabelled:
            closing = Closing(math.inf)
        if misfits or self._refused(ledger.policy, closing):
            return closing.refusal or "rows do not fit their labels"
        scale = 1.0 if self._scale is None else float(self._scale)
        factor = (1.0 / rank_count() if self._reduction == "mean" else 1.0) / scale
        return self._record(ledger, products * factor**2, counts, closing)

    def _refused(self, policy: str, closing: Closing) -> str:
        if not closing.refusal:
            return ""
        what = f"role gradients of {policy} refused: {closing.refusal}"
        self._faults[what] += 1
        if what not in self._warned:
            self._warned.add(what)
            _LOG.warning("%s (%s); counted, the training run goes on", what, closing.numbers)
        return closing.refusal

    def _tally(self, ledger: Accumulator, closure: Closure) -> Tensor:
        """Note what is counted per rank.

        Counts of groups, rows of unknown roles, strange slots, misfits, forwards without labels,
        weights that could not be followed, gradients that arrived, and a flag per weight whose
        gradient passed its tap by.
        """
        assert ledger.store is not None
        device = ledger.store.tensors()[0].device
        missed = sum(parameter.missed() for parameter in self._parameters)
        parts = [
            *ledger.seen(),
            torch.tensor([ledger.misfits, self._watch.unlabelled, missed, closure.arrived]),
            closure.bypassed(),
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
        self, ledger: Accumulator, products: Tensor, counts: Sequence[float], closing: Closing
    ) -> GramRecord | str:
        store = ledger.store
        assert store is not None
        seen = [index for index, count in enumerate(counts) if count]
        if self._scale is not None and not bool(products[seen][:, seen].isfinite().all()):
            self._faults["role gradients: overflow, the scaler skips this step"] += 1
            return "overflow"
        labels, gram = self.registry.of_labels(products, seen)
        return GramRecord(
            policy=ledger.policy,
            labels=labels,
            products=gram,
            method="exact" if self._kind == "full" else "folded",
            relative_error=store.relative_error(),
            halves=self.registry.halves(products, seen),
            closure=closing.gap,
            covered=closing.covered,
            bypassed=closing.bypassed,
        )
