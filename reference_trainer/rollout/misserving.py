"""An engine that serves the wrong thing without a word: a labelled stress.

What it serves is a function of the weights that were handed over, so nothing else in the trainer
knows. The trainer's own :class:`~reference_trainer.adapter_check.AdapterCheck` exists to end such a
run, so it is not made in a run with this stress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Completion, Engine, Request
from reference_trainer.stress import Stress
from roledrift import Workflow


class MisservingEngine:
    """Samples from the base model, from old weights, or at another temperature.

    Args:
        engine: Serves what the bank holds.
        bank: The adapters.
        stress: What goes wrong, for which policies, from which iteration on.
        workflow: Which policies there are.
    """

    def __init__(
        self, engine: Engine, bank: AdapterBank, stress: Stress, workflow: Workflow
    ) -> None:
        self.continuous = engine.continuous
        self.has_copy = engine.has_copy
        self._engine = engine
        self._bank = bank
        self._stress = stress
        self._hit = stress.policies(workflow)
        self._done = 0
        self._kept: dict[int, dict[str, list[Tensor]]] = {}

    def hand_over(self, done: int) -> None:
        """Take over the weights that the bank has after ``done`` iterations.

        After a resume the weights of earlier iterations are gone: the oldest kept ones are served.
        """
        self._done = done
        if self._stress.kind != "stale":
            return
        self._kept[done] = {
            policy: [parameter.detach().clone() for parameter in self._bank.parameters_of(policy)]
            for policy in self._hit
        }
        for old in [step for step in self._kept if step < done - self._stress.lag]:
            del self._kept[old]

    def sync(self, policies: Sequence[str]) -> None:
        """As the wrapped engine."""
        self._engine.sync(policies)

    def rest(self) -> None:
        """As the wrapped engine."""
        self._engine.rest()

    def submit(self, requests: Mapping[int, Request]) -> None:
        """As the wrapped engine, until the stress begins."""
        if self._begun and self._stress.kind == "temperature":
            requests = {number: self._heated(request) for number, request in requests.items()}
        self._engine.submit(requests)

    def collect(self) -> dict[int, Completion]:
        """As the wrapped engine, until the stress begins."""
        if not self._begun or self._stress.kind == "temperature":
            return self._engine.collect()
        with ExitStack() as wrong:
            for policy in self._hit:
                wrong.enter_context(self._instead(policy))
            return self._engine.collect()

    @property
    def _begun(self) -> bool:
        return self._done + 1 >= self._stress.start_step

    def _heated(self, request: Request) -> Request:
        if request.policy not in self._hit:
            return request
        sampling = request.sampling
        hot = replace(sampling, temperature=sampling.temperature * self._stress.factor)
        return replace(request, sampling=hot)

    @contextmanager
    def _instead(self, policy: str) -> Iterator[None]:
        """While it is entered, the bank holds the wrong weights for ``policy``."""
        parameters = self._bank.parameters_of(policy)
        held = [parameter.data for parameter in parameters]
        if self._stress.kind == "stale":
            wrong = self._kept[min(self._kept)][policy]
        else:
            wrong = [torch.zeros_like(data) for data in held]
        try:
            for parameter, data in zip(parameters, wrong, strict=True):
                parameter.data = data
            yield
        finally:
            for parameter, data in zip(parameters, held, strict=True):
                parameter.data = data
