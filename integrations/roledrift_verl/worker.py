"""In the actor's workers: what the loss of each role's rows saw, and whose gradient it made.

verl's engines hand every micro-batch, with all of its columns, to the loss function together with
the log-probabilities that the loss is computed from. So the loss function is followed, for one
call of ``BaseEngine.train_batch``; the engine, the model's outputs and the loss are left as they
are. Shape suffixes: B rows, T response positions.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, distributed, nn

from roledrift.capture.attaching import attach_gradients
from roledrift.capture.batch import RoleBatch
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.tokens import TokenCapture
from roledrift.records import GramRecord
from roledrift.spans import SpanTable
from roledrift_verl.wire import FILLING, ORDER, PROBLEM, REPORT, ROLE, SLOT, Order, Report

_LOG = logging.getLogger("roledrift")

_LAST = "update_lr_scheduler"
"""verl's own mark of the last mini-batch of an update."""

_WATCHES: WeakKeyDictionary[Any, WorkerWatch] = WeakKeyDictionary()


def train_batch(
    original: Callable[..., Any], engine: Any, data: Any, loss_function: Callable[..., Any]
) -> Any:
    """``BaseEngine.train_batch`` with its loss function followed.

    Args:
        original: verl's method.
        engine: The actor's engine.
        data: A mini-batch with the columns and the order of :mod:`roledrift_verl.wire`.
        loss_function: verl's.

    Returns:
        What verl's method returns, with a report among its metrics.
    """
    watch = _WATCHES.setdefault(engine, WorkerWatch())
    with watch.fenced("begin"):
        watch.begin(data[ORDER], engine)

    def followed(*args: Any, **kwargs: Any) -> Any:
        result = loss_function(*args, **kwargs)
        if "model_output" in kwargs:  # top-k distillation calls it to process logits as well
            with watch.fenced("loss"):
                watch.seen(kwargs["model_output"], kwargs["data"])
        return result

    with watch.labelling(engine):
        outputs = original(engine, data, followed)
    with watch.fenced("end"):
        last = bool(data[_LAST]) if _LAST in data.keys() else True  # noqa: SIM118 - a TensorDict
        report = watch.end(last=last)
        if "metrics" in outputs:  # only where verl collects them
            outputs["metrics"][REPORT] = [report]
    return outputs


class WorkerWatch:
    """What is known of one engine; updates of the actor fill it, mini-batch by mini-batch."""

    def __init__(self) -> None:
        self._order: Order | None = None
        self._capture: TokenCapture | None = None
        self._probe: RoleGradientProbe | None = None
        self._coverage = ""
        self._number = 0
        self._faults: Counter[str] = Counter()
        self._named: set[str] = set()

    @contextmanager
    def fenced(self, part: str) -> Iterator[None]:
        """Count what goes wrong and tell the trainer: a monitor never ends a training."""
        try:
            yield
        except Exception as error:
            if os.environ.get("ROLEDRIFT_STRICT", "") not in ("", "0"):
                raise
            what = f"worker {part}: {type(error).__name__}"
            self._faults[what] += 1
            if what not in self._named:
                self._named.add(what)
                _LOG.warning("%s (%s); counted, the training run goes on", what, error)

    def begin(self, order: Order, engine: Any) -> None:
        """Before a mini-batch; with the first one, look at the model.

        Every rank comes to the same answer, because adding gradients over ranks waits for all.
        """
        if self._order is None or self._order.step != order.step:
            self._number = 0
        first, self._order = self._order is None, order
        if first:
            self._capture = TokenCapture(order.workflow)
            self._coverage = _not_one_piece(engine)
            if not self._coverage:
                self._attach(order, engine)
        if self._probe is not None:
            self._probe.stretch(order.stretch)

    def _attach(self, order: Order, engine: Any) -> None:
        made: RoleGradientProbe | None = None
        self._coverage = "not measured: it failed, see the faults"
        # A fence of its own: the others wait below, also for a rank that ran out of memory here.
        with self.fenced("attach"):
            made, self._coverage = attach_gradients(
                engine.module,
                order.workflow,
                order.config,
                slots=order.slots,
                halves=order.slots and order.problems,
                scaler=getattr(engine, "scaler", None),
            )
        answers: list[bool] = [made is not None] * _ranks()
        if _ranks() > 1:
            distributed.all_gather_object(answers, made is not None)
        if made is not None and not all(answers):
            made.detach()
            self._coverage = "not measured: some ranks cannot"
        self._probe = made if all(answers) else None

    @contextmanager
    def labelling(self, engine: Any) -> Iterator[None]:
        """Tell the gradient probe whose rows each forward is about to see."""
        probe = self._probe
        if probe is None or not probe.measuring:
            yield
            return
        own = engine.prepare_model_inputs

        def prepare(micro_batch: Any) -> Any:
            inputs = own(micro_batch)
            with self.fenced("labels"):
                self._label(probe, micro_batch, inputs[0]["input_ids"])
            return inputs

        engine.prepare_model_inputs = prepare
        try:
            yield
        finally:
            vars(engine).pop("prepare_model_inputs", None)

    def _label(self, probe: RoleGradientProbe, micro_batch: Any, ids: Tensor) -> None:
        order = self._order
        assert order is not None
        role_B, slot_B, problem_B = (micro_batch[name].cpu() for name in (ROLE, SLOT, PROBLEM))
        # A row that fills up has no loss; any label is right for it, and an unknown one a fault.
        labels = [torch.where(role_B == FILLING, 0, role_B), slot_B, problem_B]
        if len(role_B) != ids.shape[0]:
            # Packed: one row of all tokens, maybe filled up at its end with tokens without loss.
            lengths_B = micro_batch["input_ids"].offsets().diff().cpu()
            lengths_B[-1] += ids.shape[1] - lengths_B.sum()
            labels = [label.repeat_interleave(lengths_B)[None] for label in labels]
        role, slot, problem = labels
        split = order.slots and order.problems
        probe.set_groups(role, slot if order.slots else None, prompt=problem if split else None)

    def seen(self, model_output: Mapping[str, Any], data: Any) -> None:
        """Measure a micro-batch from the log-probabilities that its loss was computed with."""
        order, capture = self._order, self._capture
        if self._probe is not None:
            self._probe.set_groups(None)
        if order is None or capture is None or model_output.get("log_probs") is None:
            return
        from verl.workers.utils.padding import no_padding_2_padding

        kept = (data[ROLE] >= 0).nonzero()[:, 0]
        if not len(kept):
            return
        logp_BT = no_padding_2_padding(model_output["log_probs"].detach(), data)[kept]
        names = ("old_log_probs", "response_mask", "advantages")
        behind_BT, mask_BT, advantage_BT = (_padded(data[name])[kept] for name in names)
        columns: dict[str, Any] = {"old_logp": behind_BT, "clip": order.clip}
        steps: int | None = self._number if order.on_policy else None
        if order.bypass:
            columns = {
                "rollout_logp": behind_BT,
                "rollout_temperature": order.rollout_temperature,
            }
            entropy = model_output.get("entropy")
            if entropy is not None:
                columns["entropy"] = no_padding_2_padding(entropy.detach(), data)[kept]
        capture.add(
            RoleBatch.from_padded(
                order.workflow,
                role=data[ROLE][kept],
                mask=mask_BT,
                slot=data[SLOT][kept] if order.slots else None,
                logp=logp_BT,
                advantage=advantage_BT,
                temperature=order.temperature,
                steps_between=steps,
                outputs=False,
                **columns,
            )
        )

    def end(self, *, last: bool) -> Report:
        """After a mini-batch: what was seen in it, and after the last one the gradients."""
        order, capture = self._order, self._capture
        assert order is not None
        number, self._number = self._number, self._number + 1
        gradients: tuple[GramRecord, ...] = ()
        if last and self._probe is not None:
            drained = self._probe.drain_gradients()
            self._faults.update(self._probe.faults())
            gradients = tuple(_mean(gram, self._number) for gram in drained)
        tables = [] if capture is None else capture.drain()
        if capture is not None:
            self._faults.update(capture.faults())
        faults, self._faults = dict(self._faults), Counter()
        if last:
            self._number = 0
        kept = tables if order.bypass else [_ratios_only(table) for table in tables]
        return Report(order.step, number, tuple(kept), gradients, faults, self._coverage)


def _not_one_piece(engine: Any) -> str:
    """Why the gradients of an engine's model cannot be split by role; empty if they can."""
    name = type(engine).__name__
    if not isinstance(getattr(engine, "module", None), nn.Module):
        return f"not measured: {name} holds its model in pieces"
    if int(getattr(engine, "ulysses_sequence_parallel_size", 1) or 1) > 1:
        return f"not measured: {name} cuts sequences apart (ulysses_sequence_parallel_size)"
    if not hasattr(engine, "prepare_model_inputs"):
        return f"not measured: {name} has no prepare_model_inputs"
    return ""


def _ranks() -> int:
    several = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if several else 1


def _padded(value: Tensor) -> Tensor:
    return value.to_padded_tensor(0) if value.is_nested else value


def _ratios_only(table: SpanTable) -> SpanTable:
    """Without what the trainer measures of the same tokens: they are not to count twice."""
    return replace(table, nll_N=None, entropy_N=None)


def _mean(gram: GramRecord, steps: int) -> GramRecord:
    """The mean gradient of ``steps`` optimizer steps, from their sum."""

    def scaled(rows: tuple[tuple[float, ...], ...]) -> tuple[tuple[float, ...], ...]:
        return tuple(tuple(value / steps**2 for value in row) for row in rows)

    halves = {role: scaled(rows) for role, rows in gram.halves.items()}
    return replace(gram, products=scaled(gram.products), halves=halves)
