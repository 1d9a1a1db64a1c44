"""One LoRA adapter per policy on one shared base model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import torch
from peft import LoraConfig, PeftModel, get_peft_model, load_peft_weights, set_peft_model_state_dict
from peft.tuners.lora import LoraLayer, LoraModel
from torch import Tensor
from torch.nn import Parameter
from torch.optim import SGD, AdamW, Optimizer
from transformers import PreTrainedModel

from reference_trainer.errors import SettingsError
from reference_trainer.schedule import Schedule, lr_factor
from reference_trainer.seeds import derive

_POLICY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")
"""As role names: a policy is a folder of a checkpoint."""

_ALL = "*"


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
    """The optimizer, with a linear warm-up.

    Attributes:
        rule: ``adamw``, which divides a gradient by its own running size, or ``sgd`` without
            momentum, whose steps are as large as the gradients.
        lr: Learning rate after the warm-up.
        warmup_steps: Iterations until ``lr`` is reached. Counted in iterations of the run, never in
            updates of a role, so that every policy is at the same point of the schedule.
        schedule: What follows the warm-up, over the iterations of the run.
        floor: Share of ``lr`` that ``linear`` and ``cosine`` end at.
        optimizers: One optimizer per policy, or one for all of them. A policy without rows in an
            iteration is neither stepped nor decayed either way.
        weight_decay: Decoupled with ``adamw``, part of the gradient with ``sgd``.
        max_grad_norm: Gradients of a policy are scaled down to this norm.
    """

    rule: Literal["adamw", "sgd"] = "adamw"
    lr: float = 1e-3
    warmup_steps: int = 10
    schedule: Schedule = "constant"
    floor: float = 0.0
    optimizers: Literal["per_policy", "one"] = "per_policy"
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0


class AdapterBank:
    """The base model with one adapter per policy, and their optimizers.

    Exactly one adapter is active at a time; it alone is trained, and an unknown policy is an error
    instead of a silent fall back to the base model. PEFT finds adapters by text in parameter paths,
    so it gets names of our own and a policy may be called what it likes, ``model`` or ``lora``.

    Args:
        base: The frozen base model.
        policies: Names of the policies.
        lora: Shape of the adapters.
        adam: Optimizer settings.
        seed: For the adapters' initial weights; torch's global generator is left as it was.
        lr_factors: Policy to a factor of the learning rate; 1 for policies that are not named.

    Attributes:
        adapters: PEFT's name of each adapter to its policy.
        optimizers: By policy; under the name ``"*"`` if there is one for all.
        device: Where everything is.

    Raises:
        SettingsError: If a policy name repeats or cannot be the name of a folder.
    """

    def __init__(
        self,
        base: PreTrainedModel,
        policies: Sequence[str],
        *,
        lora: LoraSettings,
        adam: AdamSettings,
        seed: int,
        lr_factors: Mapping[str, float] | None = None,
    ) -> None:
        if len(set(policies)) != len(policies) or not all(map(_POLICY_NAME.match, policies)):
            raise SettingsError(
                f"policy names {list(policies)} must be unique, start with a letter, and hold only "
                "letters, digits, _ . -"
            )
        self.policies = tuple(policies)
        # All of one length, because PEFT searches for names as parts of longer ones in places, and
        # none can be a policy's: they start with a digit.
        self.adapters = {f"0adapter{i:04d}": name for i, name in enumerate(self.policies)}
        self._names = {policy: name for name, policy in self.adapters.items()}
        self._adam = adam
        self._lr_factors = {name: (lr_factors or {}).get(name, 1.0) for name in self.policies}
        self.model = self._wrap(base, lora, seed)
        self.causal_lm = cast(PreTrainedModel, self.model.get_base_model())
        self.pad_id = int(base.config.pad_token_id)
        self.device = self.causal_lm.device
        self._layers = [module for module in self.model.modules() if isinstance(module, LoraLayer)]
        self._places = [
            (parent, name, child)
            for parent in self.model.modules()
            for name, child in parent.named_children()
            if isinstance(child, LoraLayer)
        ]
        self._parameters = {name: self._find(self._names[name]) for name in self.policies}
        self.optimizers = self._build_optimizers()
        self._moved: set[str] = set()
        self._active = ""
        self.activate(self.policies[0])
        self.model.eval()

    def _wrap(self, base: PreTrainedModel, lora: LoraSettings, seed: int) -> PeftModel:
        settings = LoraConfig(
            r=lora.rank,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
        first, *others = self.policies
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive(seed, "adapter", first))
            model: PeftModel = get_peft_model(base, settings, adapter_name=self._names[first])
            for policy in others:
                torch.manual_seed(derive(seed, "adapter", policy))
                model.add_adapter(self._names[policy], settings)
        return model

    def _find(self, adapter: str) -> list[Parameter]:
        named = [
            parameter
            for name, parameter in self.model.named_parameters()
            if adapter in name.split(".")
        ]
        return [parameter for parameter in named if parameter.dtype.is_floating_point]

    def _build_optimizers(self) -> dict[str, Optimizer]:
        settings: dict[str, Any] = {"lr": self._adam.lr, "weight_decay": self._adam.weight_decay}
        kind: type[Optimizer] = AdamW if self._adam.rule == "adamw" else SGD
        if self._adam.optimizers == "one":
            groups = [{"params": self._parameters[name]} for name in self.policies]
            return {_ALL: kind(groups, **settings)}
        return {name: kind(self._parameters[name], **settings) for name in self.policies}

    def _group(self, policy: str) -> dict[str, Any]:
        """The parameter group of ``policy``; looked up anew: a restored optimizer has new ones."""
        if policy in self.optimizers:
            return self.optimizers[policy].param_groups[0]
        return self.optimizers[_ALL].param_groups[self.policies.index(policy)]

    def activate(self, policy: str) -> None:
        """Make ``policy`` the one that computes and the only one that trains.

        Raises:
            SettingsError: For a policy that is not in the bank.
        """
        if policy not in self._parameters:
            raise SettingsError(f"no policy {policy!r} in the bank; it holds {list(self.policies)}")
        if policy != self._active:
            # As PeftModel.set_adapter does, without its walk over all modules.
            for layer in self._layers:
                layer.set_adapter(self._names[policy])
            self.model.active_adapter = self._names[policy]
            cast(LoraModel, self.model.base_model).active_adapter = self._names[policy]
            self._active = policy

    def without_adapters(self) -> AbstractContextManager[None]:
        """While it is entered, the model computes as the base model."""
        return cast(AbstractContextManager[None], self.model.disable_adapter())

    @contextmanager
    def fused(self, policy: str) -> Iterator[None]:
        """While it is entered, ``policy`` computes with its adapter added into the base weights.

        That halves the layers of a forward. Nothing can be trained meanwhile. The base weights are
        put aside and put back, not recomputed, so they stay the same bit by bit. PEFT's layers are
        out of the model too: at one token per forward passing through them costs as much as the
        matrix product inside. A base model in lower precision is left as it is: it would round
        small updates away.
        """
        self.activate(policy)
        if self.causal_lm.dtype != torch.float32:
            yield
            return
        adapter = self._names[policy]
        aside = [cast(Tensor, layer.base_layer.weight.data) for _, _, layer in self._places]
        try:
            for (parent, name, layer), weight in zip(self._places, aside, strict=True):
                layer.base_layer.weight.data = weight + cast(Any, layer).get_delta_weight(adapter)
                setattr(parent, name, layer.base_layer)
            yield
        finally:
            for (parent, name, layer), weight in zip(self._places, aside, strict=True):
                layer.base_layer.weight.data = weight
                setattr(parent, name, layer)

    @contextmanager
    def mode(self, *, training: bool) -> Iterator[None]:
        """While it is entered, the model is in that mode; outside updates it is not training.

        A switch walks over all modules, so there is none if the mode is right already.
        """
        before = self.model.training
        if before != training:
            self.model.train(training)
        try:
            yield
        finally:
            if before != training:
                self.model.train(before)

    def parameters_of(self, policy: str) -> list[Parameter]:
        """The adapter weights of ``policy``."""
        return self._parameters[policy]

    def fingerprint(self, policy: str) -> int:
        """The sum of the adapter's weights read as integers: what equal weights have in common."""
        bits = [
            parameter.detach().view(torch.int32).sum() for parameter in self._parameters[policy]
        ]
        return int(torch.stack(bits).sum())

    def moved(self, policy: str) -> bool:
        """Whether the policy should differ from the base model: trained or loaded."""
        return policy in self._moved

    def set_lr(
        self, position: int, *, total: int, factors: Mapping[str, float] | None = None
    ) -> float:
        """Set every policy's learning rate.

        Args:
            position: Place in the schedule: the iteration, from 1.
            total: Iterations of the run.
            factors: Policy to what its rate is multiplied with; 1 for policies that are not named.

        Returns:
            The rate of a policy without a factor of its own; of those in ``factors`` the largest
            counts.
        """
        factors = {policy: (factors or {}).get(policy, 1.0) for policy in self.policies}
        adam = self._adam
        share = lr_factor(
            position,
            schedule=adam.schedule,
            warmup=adam.warmup_steps,
            total=total,
            floor=adam.floor,
        )
        lr = adam.lr * share
        for policy in self.policies:
            self._group(policy)["lr"] = lr * factors[policy] * self._lr_factors[policy]
        return lr * max(factors.values())

    def lr(self, policy: str) -> float:
        """The learning rate that the next step of ``policy`` will use."""
        return float(self._group(policy)["lr"])

    def step(self, policy: str) -> float:
        """One optimizer step of ``policy`` on the gradients it has.

        Returns:
            Norm of the gradient before it was clipped. If that is not finite, nothing is changed.
        """
        parameters = self._parameters[policy]
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._adam.max_grad_norm))
        optimizer = self.optimizers.get(policy) or self.optimizers[_ALL]
        if norm == norm and norm != float("inf"):
            optimizer.step()
            if norm > 0 and self._group(policy)["lr"] > 0:
                self._moved.add(policy)
        optimizer.zero_grad(set_to_none=True)
        return norm

    def save(self, folder: Path, policies: Sequence[str] | None = None) -> None:
        """Write adapters in PEFT's format, one sub-folder per policy; None for all policies."""
        wanted = self.policies if policies is None else policies
        names = [self._names[policy] for policy in wanted]
        self.model.save_pretrained(str(folder), selected_adapters=names)
        for adapter, policy in zip(names, wanted, strict=True):
            (folder / adapter).rename(folder / policy)

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
            self.load_adapter(name, folder / name)

    def load_adapter(self, policy: str, folder: Path) -> None:
        """Read one adapter in PEFT's format into ``policy``.

        Raises:
            SettingsError: If there is no adapter in ``folder``, or it has another shape.
        """
        if not (folder / "adapter_config.json").is_file():
            raise SettingsError(
                f"{folder} holds no adapter (no adapter_config.json): give the folder of one "
                "policy in PEFT's format, such as <run>/trainer/adapters/generator"
            )
        try:
            outcome: Any = set_peft_model_state_dict(
                self.model, load_peft_weights(str(folder)), adapter_name=self._names[policy]
            )
        except RuntimeError as error:
            raise SettingsError(f"the adapter in {folder} does not fit: {error}") from error
        if outcome.unexpected_keys:
            raise SettingsError(
                f"the adapter in {folder} is of another model: no place for "
                f"{outcome.unexpected_keys[:3]}"
            )
        if any(bool(factor.any()) for factor in self._second_factors(policy)):
            self._moved.add(policy)

    def _second_factors(self, policy: str) -> list[Parameter]:
        """The factors that start at 0: while all are, the adapter does nothing."""
        return [
            parameter
            for name, parameter in self.model.named_parameters()
            if self._names[policy] in name.split(".") and "lora_B" in name.split(".")
        ]
