"""What to do about a finding, in the words of the trainer that is at work.

A remedy says in general terms what helps and, for the trainers that have a setting for it, which
line of their configuration that is. Trainers without such a setting get the general words only:
a setting that does not exist is worse than none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from roledrift.records import Checkpoint
from roledrift.sums import EVERYONE


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do.

    Attributes:
        text: In general terms; ``{role}`` is filled in.
        settings: Trainer (as :func:`family` names them) to the line of its configuration.
    """

    text: str
    settings: Mapping[str, str] = field(default_factory=dict)


KL_ANCHOR = Remedy(
    "anchor {role} to its start with a KL term",
    {
        "trl": "beta=0.01",
        "verl": "actor_rollout_ref.actor.use_kl_loss=True"
        " actor_rollout_ref.actor.kl_loss_coef=0.01",
        "rllm": "rllm.algorithm.kl_beta=0.01",
        "reference_trainer": "interventions.kl_anchor = {{ {role} = 0.01 }}",
        "paper": "+trainer.kl_loss_coef_per_role.{role}=0.01",
    },
)
AGENT_WISE = Remedy(
    "normalise advantages per prompt and role, not over all roles together",
    {
        "drmas": "algorithm.group_by_agent_id=True",
        "reference_trainer": 'interventions.agentwise = ["{role}"]',
    },
)
CAP_LENGTH = Remedy(
    "cap the responses of {role}",
    {
        "trl": "max_completion_length=<tokens>",
        "verl": "data.max_response_length=<tokens>",
        "rllm": "rllm.data.max_response_length=<tokens>",
        "reference_trainer": "rollout.max_new_tokens = <tokens>",
    },
)
EQUAL_WEIGHT = Remedy(
    "average the loss so that long responses weigh no more",
    {
        "trl": "loss_type='dr_grpo'",
        "verl": "actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-sum",
        "rllm": "rllm.algorithm.loss_agg_mode=seq-mean-token-sum",
        "reference_trainer": 'train.aggregation = "seq-mean-token-mean"',
    },
)
OWN_POLICY = Remedy(
    "give {role} a policy of its own (an adapter per role)",
    {"reference_trainer": 'routing = "isolated"'},
)
ROLE_BALANCE = Remedy(
    "weigh the loss per role by its target share of the gradient over the measured one",
    {"reference_trainer": "interventions.balance_roles = true"},
)
SLOT_WEIGHT = Remedy(
    "weigh the loss of {role} by 1/slots or 1/sqrt(slots)",
    {"reference_trainer": 'interventions.slot_weights = {{ {role} = "inverse_sqrt" }}'},
)
SLOT_RATE = Remedy(
    "lower the learning rate of {role}'s policy in proportion to its slots",
    {
        "trl": "learning_rate=<rate / slots>",
        "verl": "actor_rollout_ref.actor.optim.lr=<rate / slots>",
        "reference_trainer": "interventions.lr_factors = {{ {role} = 0.33 }}",
    },
)
LOWER_RATE = Remedy(
    "lower the learning rate of {role}'s policy",
    {
        "trl": "learning_rate=<lower>",
        "verl": "actor_rollout_ref.actor.optim.lr=<lower>",
        "reference_trainer": "interventions.lr_factors = {{ {role} = 0.3 }}",
    },
)

_GO_BACK: Mapping[str, str] = {
    "trl": "trainer.train(resume_from_checkpoint='{path}')",
    "verl": "trainer.resume_mode=resume_path trainer.resume_from_path={path}",
}


def family(host: str) -> str:
    """The trainer that a header's ``host`` belongs to; empty if none is known.

    ``trl.GRPOTrainer`` is ``trl``; ``paper code (rllm fork)`` is ``paper``.
    """
    word = host.replace(".", " ").split(" ", 1)[0].lower()
    known = ("trl", "verl", "rllm", "reference_trainer", "paper", "drmas")
    return word if word in known else ""


def worded(remedy: Remedy | str, *, role: str, host: str = "") -> str:
    """One line of advice, with the line of the host's configuration where it has one."""
    who = "every role" if role == EVERYONE else f"the {role}"
    if isinstance(remedy, str):
        return remedy.format(role=who)
    text, line = remedy.text.format(role=who), remedy.settings.get(host)
    if line is not None and role == EVERYONE and "{role}" in line:
        line = None  # a line per role would have to be written; which roles there are, it says not
    return text if line is None else f"{text}: {line.format(role=role)}"


def go_back(onset: int, checkpoint: Checkpoint | None, host: str = "") -> str:
    """The first thing to do about any drift: stop, or train on from before the onset."""
    if checkpoint is None:
        return f"stop, or roll back to a checkpoint from before step {onset}"
    line = _GO_BACK.get(host)
    how = "" if line is None else f": {line.format(path=checkpoint.path)}"
    return (
        f"stop, or roll back to the checkpoint of step {checkpoint.step}, the last from before "
        f"step {onset}" + (how or f": {checkpoint.path}")
    )
