"""One LoRA adapter per policy on one shared base model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from torch.nn import Parameter
from transformers import PreTrainedModel

from reference_trainer.errors import SettingsError
from reference_trainer.seeds import derive

_PEFT_PREFIX = "lora_"
"""PEFT looks for this text in parameter names, so an adapter called ``a`` would be found there."""


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Shape of every adapter.

    Attributes:
        rank: Rank r of the two factors.
        alpha: The update is scaled by ``alpha / rank``.
        dropout: Dropout in front of the first factor; 0 keeps sampling and training in the same
            mode.
    """

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.0


@dataclass(frozen=True, slots=True)
class AdamSettings:
    """AdamW with a linear warm-up.

    Attributes:
        lr: Learning rate after the warm-up.
        warmup_steps: Iterations until ``lr`` is reached. Counted in iterations of the run, never in
            updates of a role, so that every policy is at the same point of the schedule.
        weight_decay: Decoupled weight decay.
        max_grad_norm: Gradients of a policy are scaled down to this norm.
    """

    lr: float = 1e-3
    warmup_steps: int = 10
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0


class AdapterBank:
    """The base model with one adapter and one optimizer per policy.

    Exactly one adapter is active at a time; it alone is trained, and an unknown policy is an error
    instead of a silent fall back to the base model. Parameters are found by the exact adapter name
    in their path.

    Args:
        base: The frozen base model.
        policies: Names of the policies; letters, digits, ``_`` and ``-``.
        lora: Shape of the adapters.
        adam: Optimizer settings.
        seed: For the adapters' initial weights; torch's global generator is left as it was.

    Raises:
        SettingsError: If a policy name repeats, holds a dot (PEFT separates module names by it), or
            is part of ``lora_``.
    """

    def __init__(
        self,
        base: PreTrainedModel,
        policies: Sequence[str],
        *,
        lora: LoraSettings,
        adam: AdamSettings,
        seed: int,
    ) -> None:
        wrong = [name for name in policies if "." in name or name in _PEFT_PREFIX]
        if len(set(policies)) != len(policies) or wrong:
            raise SettingsError(
                f"policy names {list(policies)} must be unique, without dots, and no part of "
                f"{_PEFT_PREFIX!r}"
            )
        self.policies = tuple(policies)
        self._adam = adam
        settings = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "adapter", self.policies[0]))
            self.model: PeftModel = get_peft_model(base, settings, adapter_name=self.policies[0])
            for name in self.policies[1:]:
                torch.manual_seed(derive(seed, "adapter", name))
                self.model.add_adapter(name, settings)
        self.causal_lm = cast(PreTrainedModel, self.model.get_base_model())
        self.pad_id = int(base.config.pad_token_id)
        self._parameters = {name: self._find(name) for name in self.policies}
        self.optimizers = {
            name: torch.optim.AdamW(
                self._parameters[name], lr=adam.lr, weight_decay=adam.weight_decay
            )
            for name in self.policies
        }
        self._active = ""
        self.activate(self.policies[0])

    def _find(self, policy: str) -> list[Parameter]:
        found = [one for name, one in self.model.named_parameters() if policy in name.split(".")]
        return [one for one in found if one.dtype.is_floating_point]

    def activate(self, policy: str) -> None:
        """Make ``policy`` the one that computes and the only one that trains.

        Raises:
            SettingsError: For a policy that is not in the bank.
        """
        if policy not in self._parameters:
            raise SettingsError(f"no policy {policy!r} in the bank; it holds {list(self.policies)}")
        if policy != self._active:
            self.model.set_adapter(policy)
            self._active = policy

    def parameters_of(self, policy: str) -> list[Parameter]:
        """The adapter weights of ``policy``."""
        return self._parameters[policy]

    def warm_up(self, step: int, *, factor: float = 1.0) -> float:
        """Set every policy's learning rate for iteration ``step`` (from 1) and return it."""
        lr = self._adam.lr * factor * min(1.0, step / max(1, self._adam.warmup_steps))
        for optimizer in self.optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = lr
        return lr

    def step(self, policy: str) -> float:
        """One optimizer step of ``policy`` on the gradients it has.

        Returns:
            Norm of the gradient before it was clipped. If that is not finite, nothing is changed.
        """
        parameters = self._parameters[policy]
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._adam.max_grad_norm))
        if norm == norm and norm != float("inf"):
            self.optimizers[policy].step()
        self.optimizers[policy].zero_grad(set_to_none=True)
        return norm

    def save(self, folder: Path) -> None:
        """Write every adapter in PEFT's format, one sub-folder per policy."""
        self.model.save_pretrained(str(folder), selected_adapters=list(self.policies))

    def load(self, folder: Path) -> None:
        """Read adapters that :meth:`save` wrote.

        Raises:
            SettingsError: If a policy of this bank is not there.
        """
        missing = [name for name in self.policies if not (folder / name).is_dir()]
        if missing:
            raise SettingsError(
                f"{folder} holds no adapter for {missing}: is it a checkpoint of another routing?"
            )
        for name in self.policies:
            set_peft_model_state_dict(
                self.model, load_peft_weights(str(folder / name)), adapter_name=name
            )
