"""What is wrong with a run, and whose it is: read off what was done to it, not off a detector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from benchmarks.detection.suite import Scenario, Suite
from roledrift import Workflow

Family = Literal["dynamics", "input", "capture", "healthy", "hard negative"]
"""``dynamics``: the training itself goes wrong. ``input``: what is sampled or counted is not what
is trained. ``capture``: what shared weights do by themselves; labelled by the texts afterwards."""

_DYNAMICS = ("hot_lr", "length_bonus", "reward_noise")
_MOVEMENT = ("update.k3", "update.log_ppl_abs_diff")


@dataclass(frozen=True, slots=True)
class Truth:
    """The label of one scenario.

    Attributes:
        family: What kind of run it is.
        onset: First step with what is wrong; 1 for a run that is sick from the start.
        roles: Roles that a right alert is about; ``"*"`` among them where all are hit.
        moved: Statistics that show whether the fault has had an effect on these roles.
        certain: True if the fault is there by construction, whatever its effect.
    """

    family: Family
    onset: int
    roles: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    certain: bool = False


def truth(suite: Suite, scenario: Scenario, workflow: Workflow) -> Truth:
    """The label of a scenario.

    A hot learning rate and noisy rewards hit every role whose policy they reach, so an alert about
    any of them, or about the whole run, is right. A bonus for one role's length is that role's
    alone. An input fault belongs to the roles that it was injected into.
    """
    onset = onset_of(suite, scenario)
    if scenario.label == "healthy":
        return Truth("healthy", onset)
    if scenario.label == "hard negative":
        return Truth("hard negative", onset, (*workflow.role_names, "*"))
    if scenario.label != "failure":
        return Truth("capture", 1, scenario.roles)
    stress = scenario.settings.get("stress", {})
    kind, role = stress.get("kind", "none"), stress.get("role", "")
    everyone = (*workflow.role_names, "*")
    if kind == "length_bonus":
        return Truth("dynamics", onset, (role,), ("length",))
    if kind in _DYNAMICS or kind == "none":
        hit = (role, *workflow.sharing(role)) if role else everyone
        return Truth("dynamics", onset, hit, _MOVEMENT)
    return Truth("input", onset, (role,) if role else everyone, certain=True)


def onset_of(suite: Suite, scenario: Scenario) -> int:
    """First step with what is wrong."""
    stress = scenario.settings.get("stress", {})
    return int(stress.get("start_step", getattr(scenario, "onset", None) or suite.onset))
