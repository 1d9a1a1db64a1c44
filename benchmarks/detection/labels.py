"""What is wrong with a run, and whose it is: read off what was done to it, not off a detector."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.detection.suite import Scenario, Suite
from roledrift import Workflow

Family = Literal["dynamics", "from the start", "input", "capture", "healthy", "hard negative"]
"""``dynamics``: the training itself goes wrong in mid-run. ``from the start``: it is wrong from the
first step. ``input``: what is sampled or counted is not what is trained. ``capture``: what shared
weights do by themselves; labelled by the texts afterwards."""

_MOVEMENT = ("update.k3", "update.log_ppl_abs_diff")


_TRUE_NAMES: Mapping[str, tuple[str, ...]] = {
    "hot_lr": ("learning_rate_raised",),
    "length_bonus": ("reward_detached", "reward_changed"),
    "reward_noise": ("reward_detached", "reward_changed", "learning_rate_raised"),
    "none": ("optimizer_steps_changed", "batch_changed"),
    "unserved": ("engine_mismatch",),
    "stale": ("engine_mismatch",),
    "temperature": ("engine_mismatch", "temperature_changed"),
}
"""Stress to names that say what was done, besides those that the suite lists."""


@dataclass(frozen=True, slots=True)
class Truth:
    """The label of one scenario.

    Attributes:
        family: What kind of run it is.
        onset: First step with what is wrong; 1 for a run that is sick from the start.
        roles: Roles that a right alert is about; ``"*"`` among them where all are hit.
        moved: Statistics that show whether the fault has had an effect on these roles.
        names: Names that are right for it.
        certain: True if the fault is there by construction, whatever its effect.
    """

    family: Family
    onset: int
    roles: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    certain: bool = False


def truth(suite: Suite, scenario: Scenario, workflow: Workflow) -> Truth:
    """The label of a scenario.

    A hot learning rate and noisy rewards hit every role whose policy they reach, so an alert about
    any of them, or about the whole run, is right. A bonus for one role's length is that role's
    alone. An input fault belongs to the roles that it was injected into.
    """
    if scenario.label == "natural":
        return Truth("capture", 1, scenario.roles, names=scenario.names)
    onset = 1 if scenario.from_start else suite.onset
    everyone = (*workflow.role_names, "*")
    if scenario.label != "failure":
        family: Family = "healthy" if scenario.label == "healthy" else "hard negative"
        return Truth(family, onset, everyone)
    stress = scenario.settings.get("stress", {})
    kind, role = stress.get("kind", "none"), stress.get("role", "")
    names = (*scenario.names, *_TRUE_NAMES.get(kind, ()))
    if scenario.kind == "input":
        return Truth("input", onset, (role,) if role else everyone, names=names, certain=True)
    family = "from the start" if scenario.from_start else "dynamics"
    if kind == "length_bonus":
        return Truth(family, onset, (role,), ("length",), names)
    if kind == "none":
        return Truth(family, onset, scenario.roles or everyone, _MOVEMENT, names)
    hit = (role, *workflow.sharing(role)) if role else everyone
    return Truth(family, onset, hit, _MOVEMENT, names)
