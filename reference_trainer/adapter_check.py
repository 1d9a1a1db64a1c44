"""Proof, at every hand-over of weights, that the engine serves the adapters that are trained.

An engine that lost an adapter serves the base model without a word, and a run then trains one model
on the outputs of another. So after every update each policy samples single tokens after a fixed
prompt, and their log-probabilities are compared with the trainer's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from reference_trainer.errors import AdapterError
from reference_trainer.policies import AdapterBank
from reference_trainer.rollout.engine import Engine, Request, Sampling, answers

_ROWS = 8
"""Samples per policy: one forward of the engine, and enough tokens to tell two policies apart."""


TOLERANCES = {"float32": 1e-3, "bfloat16": 0.2}
"""Differences in nats, by precision, that engines with other kernels are allowed.

In bfloat16 two engines that served the same weights were up to 0.13 nats apart: an adapter that
moved its policy by less cannot be told from the base model there.
"""


class AdapterCheck:
    """Compares what the engine serves with what the trainer holds.

    Args:
        bank: The trainer's adapters.
        engine: What serves them.
        prompt: Tokens of the fixed prompt.
        sampling: Its temperature; the length limit is not used.
        tolerance: Largest difference of log-probabilities, in nats, that counts as equal. An engine
            of other kernels or a lower precision needs more than the default.
    """

    def __init__(
        self,
        bank: AdapterBank,
        engine: Engine,
        *,
        prompt: Sequence[int],
        sampling: Sampling,
        tolerance: float = 1e-3,
    ) -> None:
        self._bank = bank
        self._engine = engine
        self._prompt = tuple(prompt)
        self._sampling = Sampling(sampling.temperature, 1)
        self._tolerance = tolerance
        with bank.without_adapters():
            self._base_V = self._next_token()

    def check(self) -> None:
        """Check every policy, all in one batch of the engine; one forward of the trainer for each.

        Raises:
            AdapterError: If a policy's outputs do not come from its weights, or if a policy that
                was trained is still the base model.
        """
        policies = self._bank.policies
        held = {policy: self._held(policy) for policy in policies}
        for policy, own_V in held.items():
            if self._bank.moved(policy) and torch.equal(own_V, self._base_V):
                raise AdapterError(
                    f"policy {policy!r} was trained or loaded but computes the base model: its "
                    "adapter is not applied. Check that its layers are the model's."
                )
        drawn = answers(
            self._engine,
            [
                Request(self._prompt, policy, self._sampling, seed)
                for policy in policies
                for seed in range(_ROWS)
            ],
        )
        for place, (policy, own_V) in enumerate(held.items()):
            rows = drawn[place * _ROWS : (place + 1) * _ROWS]
            tokens = torch.tensor([row.output_ids[0] for row in rows])
            served = torch.tensor([row.logps[0] for row in rows], dtype=torch.float32)
            off = float((served - own_V[tokens]).abs().max())
            if not off <= self._tolerance:
                raise AdapterError(
                    f"the engine does not serve policy {policy!r}: log-probabilities of a fixed "
                    f"prompt are off by {off:.2g} nats (limit {self._tolerance:g})"
                    f"{self._recognised(tokens, served, held)}. Check how the weights reach the "
                    "engine."
                )

    def _recognised(self, tokens: Tensor, served: Tensor, held: Mapping[str, Tensor]) -> str:
        """Whose log-probabilities these are, as the end of a sentence; empty if nobody's."""
        known = {"the base model": self._base_V}
        known |= {f"policy {name!r}": logps_V for name, logps_V in held.items()}
        for name, logps_V in known.items():
            if float((served - logps_V[tokens]).abs().max()) <= self._tolerance:
                return f"; they are those of {name}"
        return ""

    def _held(self, policy: str) -> Tensor:
        self._bank.activate(policy)
        return self._next_token()

    @torch.no_grad()
    def _next_token(self) -> Tensor:
        with self._bank.mode(training=False):
            tokens = torch.tensor([self._prompt], device=self._bank.device)
            logits = self._bank.causal_lm(
                input_ids=tokens, use_cache=False, logits_to_keep=1
            ).logits
        logps_V: Tensor = (logits[0, -1].float() / self._sampling.temperature).log_softmax(-1)
        return logps_V.cpu()
