"""A gradient probe as the configuration asks for it, for the integrations."""

from __future__ import annotations

from typing import Any

from torch import nn

from roledrift.capture.gradients import RoleGradientProbe
from roledrift.config import Config
from roledrift.errors import AttachError
from roledrift.workflow import Workflow


def attach_gradients(
    model: nn.Module,
    workflow: Workflow,
    config: Config,
    *,
    slots: bool = True,
    halves: bool = False,
    scaler: Any = None,
    compiles: str = "",
) -> tuple[RoleGradientProbe | None, str]:
    """A probe as the configuration asks for it, and a sentence on what it covers for the header.

    Args:
        model: With PEFT LoRA layers.
        workflow: Roles, slots and policies.
        config: Its tier and ``gradients`` section.
        slots: The host knows the slot of each row.
        halves: And the problem.
        scaler: A ``torch.amp.GradScaler``, if one is used.
        compiles: The setting of the host by which it compiles the model, at once or later; empty if
            it does not. Nothing in the model is touched then.

    Returns:
        None and the reason if nothing is to be or can be measured.
    """
    settings = config.gradients
    if config.tier == "economy" or not settings.every:
        return None, "not measured: switched off (tier or gradients.every)"
    if compiles:
        return None, (
            f"not measured: {compiles} compiles the model, and a compiled graph runs no hooks; "
            "switch it off, or use RoleOrderedGradients in a loop of your own"
        )
    probe = RoleGradientProbe(
        workflow,
        every=1 if config.tier == "full" else settings.every,
        store=settings.store,
        slots=slots,
        halves=halves,
    )
    try:
        return probe, probe.attach(model, scaler=scaler).describe()
    except AttachError as error:
        return None, f"not measured, but all other statistics are: {error}"
