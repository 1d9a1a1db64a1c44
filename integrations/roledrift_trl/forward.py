"""Watching a trainer that does not generate: what its forward says about the labels, per role.

For a plain :class:`transformers.Trainer` (fine-tuning on roles' texts, losses of one's own). There
are no rewards and no rollouts: whatever rests on them gives *no verdict*.

Shape suffixes: B rows, T token positions, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from roledrift.capture.batch import RoleBatch
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.hooks import WeakHook
from roledrift.capture.tokens import TokenCapture
from roledrift.errors import ConfigError
from roledrift.monitor.monitor import Monitor
from roledrift_trl.watch import Followed

IGNORED = -100
"""Label of a token without loss, in all of transformers."""


class ForwardWatch:
    """One training of a trainer that hands labels to its model.

    The batch names the role of each row under ``role``: an int64 tensor ``(B,)`` of indices into
    ``workflow.role_names``, or names. It is taken out of what the model is called with. Without
    such a column (None) every row is the only role's.
    """

    def __init__(self, monitor: Monitor, trainer: Any, role: str | None) -> None:
        self.live = True
        self.trainer = trainer
        self.monitor = monitor
        self._role = role
        self._index = {name: i for i, name in enumerate(monitor.workflow.role_names)}
        self._capture = TokenCapture(monitor.workflow)
        self._gradients: RoleGradientProbe | None = None
        self._inputs: Mapping[str, Any] | None = None
        self._output: Any = None
        self._moved: set[int] = set()
        self._resting = False
        monitor.attach(self._capture)
        # Around a compiled model, not inside it: there they would be compiled too.
        wrapped: Any = getattr(trainer, "model_wrapped", None)
        model: Any = wrapped if hasattr(wrapped, "_orig_mod") else trainer.model
        self._handles = [
            model.register_forward_pre_hook(WeakHook(self._without_role), with_kwargs=True),
            model.register_forward_hook(WeakHook(self._seen)),
        ]

    def measure_gradients(self, probe: RoleGradientProbe) -> None:
        """Split the gradients by role from now on."""
        self._gradients = probe
        self.monitor.attach(probe)

    def leave(self) -> None:
        """Take everything out of the model."""
        self.live = False
        for handle in self._handles:
            handle.remove()
        if self._gradients is not None:
            self._gradients.detach()

    @property
    def training(self) -> bool:
        """False during evaluation, which is no part of the training statistics."""
        return self.live and bool(self.trainer.model.training)

    def follows(self) -> dict[str, Followed]:
        """Methods of the trainer that are followed."""
        return {"compute_loss": Followed(self._trained, before=self._labelled)}

    def take_fractions(self) -> bool:
        """False: there are no rewards, so none can be an accuracy."""
        return False

    def before_step(self) -> None:
        """Tell whose rows the optimizer step is taken on."""
        if self._resting:
            return
        names = self.monitor.workflow.role_names
        self.monitor.add_updates({names[role]: 1 for role in self._moved if role >= 0})
        self._moved = set()

    def after_step(self, step: int) -> bool:  # noqa: ARG002 - that of Watch needs it
        """Whether this step has a record."""
        if self._resting:
            self.monitor.skip_step()
        return not self._resting

    def _without_role(
        self, _model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if self._role is None or self._role not in kwargs:
            return None
        return args, {name: kwarg for name, kwarg in kwargs.items() if name != self._role}

    def _seen(self, _model: Any, _args: Any, output: Any) -> None:
        if self._inputs is not None and torch.is_grad_enabled():
            self._output = output

    def _labelled(self, call: Sequence[Any]) -> None:
        self._resting = self.monitor.skips(int(self.trainer.state.global_step))
        # A copy: compute_loss takes labels out of the dictionary where it smooths them.
        self._inputs, self._output = dict(call[1]), None
        roles_B = None if self._gradients is None else self._roles(self._inputs)
        if self._gradients is not None and roles_B is not None:
            self._gradients.set_groups(roles_B)

    def _roles(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Registry index of each row; None if the batch does not name the roles."""
        if self._role is None:
            labels = inputs.get("labels")
            return None if labels is None else torch.zeros(len(labels), dtype=torch.int64)
        given = inputs.get(self._role)
        if given is None:
            return None
        if isinstance(given, Tensor):
            return given.detach().reshape(-1).to(torch.int64)
        return torch.tensor([self._index.get(name, -1) for name in given], dtype=torch.int64)

    def _trained(self, _call: Any, _result: Any) -> None:
        inputs, self._inputs = self._inputs, None
        output, self._output = self._output, None
        if self._gradients is not None:
            self._gradients.set_groups(None)
        if self._resting:
            return
        roles_B = None if inputs is None else self._roles(inputs)
        if inputs is None or roles_B is None:
            self.monitor.count_fault("micro-batch without roles")
            return
        labels_BT = inputs.get("labels")
        logits_BTV = output.get("logits") if isinstance(output, Mapping) else None
        if labels_BT is None or labels_BT.ndim != 2:
            self.monitor.count_fault("micro-batch without labels per token")
            return
        self._moved.update(roles_B.tolist())
        mask_BT = labels_BT[:, 1:] != IGNORED
        scores: dict[str, Tensor] = {}
        if isinstance(logits_BTV, Tensor) and logits_BTV.shape[:2] == labels_BT.shape:
            scores = score(logits_BTV.detach(), labels_BT)
        else:
            self.monitor.count_fault("forward without logits per token")
        self._capture.add(
            RoleBatch.from_padded(
                self.monitor.workflow,
                role=roles_B.to(mask_BT.device),
                mask=mask_BT,
                temperature=1.0 if scores else None,
                logp=scores.get("logp"),
                entropy=scores.get("entropy"),
            )
        )


def score(logits_BTV: Tensor, labels_BT: Tensor) -> dict[str, Tensor]:
    """Log-probability of each label and entropy at each position, in nats.

    Row by row: another ``(B, T, V)`` in float32 would often be the largest tensor of the training.

    Args:
        logits_BTV: At each position, of the next token.
        labels_BT: Token ids, -100 where there is no loss.

    Returns:
        ``logp`` and ``entropy``, both ``(B, T - 1)``, at the positions of ``labels_BT[:, 1:]``.
    """
    logp, entropy = [], []
    with torch.no_grad():
        for logits_TV, labels_T in zip(logits_BTV[:, :-1], labels_BT[:, 1:], strict=True):
            logp_TV = torch.log_softmax(logits_TV.float(), dim=-1)
            logp.append(logp_TV.gather(1, labels_T.clamp(min=0)[:, None])[:, 0])
            entropy.append(-(logp_TV.exp() * logp_TV).sum(1))
    return {"logp": torch.stack(logp), "entropy": torch.stack(entropy)}


def check_columns(trainer: Any, role: str | None) -> None:
    """Does the role column, if there is one, get through to the batches?

    Raises:
        ConfigError: Saying what the dataset holds and what to change.
    """
    if role is None:
        return
    held = getattr(trainer.train_dataset, "column_names", None)
    if held is not None and role not in held:
        raise ConfigError(
            f"the training dataset has no column {role!r}; its columns are {sorted(held)}: add "
            "it, as indices into workflow.role_names, or name it with role_column=..."
        )
    if trainer.args.remove_unused_columns:
        raise ConfigError(
            f"remove_unused_columns=True drops the column {role!r} before training: set "
            "TrainingArguments(remove_unused_columns=False)"
        )
