"""From verdicts to alerts: when a finding opens, escalates and closes, and what to say about it.

Every transition is told once. A verdict of ``watch`` opens nothing; it is for the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from roledrift.config import Config
from roledrift.detect import remedies
from roledrift.detect.remedies import Remedy
from roledrift.records import Alert, Checkpoint, Level, Verdict, alert_id
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

TITLE_LIMIT = 64
"""Titles are shorter than this: it is what trackers accept."""

ADVICE: Mapping[str, tuple[Remedy | str, ...]] = {
    "length_inflation": (
        remedies.CAP_LENGTH,
        "check that no reward pays {role} for long answers",
        remedies.EQUAL_WEIGHT,
        remedies.AGENT_WISE,
        remedies.KL_ANCHOR,
    ),
    "sp_role_capture": (
        remedies.OWN_POLICY,
        remedies.ROLE_BALANCE,
        remedies.AGENT_WISE,
        "check that no reward pays {role} for long answers or for solving",
        remedies.KL_ANCHOR,
    ),
    "gradient_amplification": (
        remedies.SLOT_WEIGHT,
        remedies.SLOT_RATE,
        remedies.KL_ANCHOR,
        remedies.COHERENCE,
    ),
    "role_drift": (
        remedies.LOWER_RATE,
        remedies.KL_ANCHOR,
        "rule out noisy credit: a single role with random rewards drifts alike",
    ),
    "policy_drift": (
        remedies.LOWER_RATE,
        "check the rewards: noisy ones make every policy walk at random",
        remedies.KL_ANCHOR,
    ),
    "reward_hacking": (
        "find what pays {role} for length: a reward term, a judge that likes long answers",
        "pay for the outcome only, or subtract a price per token from {role}'s reward",
        remedies.CAP_LENGTH,
        remedies.KL_ANCHOR,
    ),
    "accuracy_cliff": (
        "read what the other findings say about the steps before: this one is the damage",
        "lower the learning rate (TRL: learning_rate; verl: actor_rollout_ref.actor.optim.lr)",
        "bound the step: a KL term (TRL: beta > 0) or a tighter clip (TRL: epsilon)",
    ),
    "reward_drop": (
        "record val_accuracy among the totals of end_step: a reward also falls when the"
        " curriculum gets harder",
    ),
    "entropy_collapse": (
        "raise the upper clip bound alone (TRL: epsilon_high=0.28; verl: clip_ratio_high)",
        "sample {role} hotter, and leave out groups with equal rewards",
        "lower the learning rate of {role}'s policy",
        remedies.KL_ANCHOR,
    ),
    "entropy_explosion": (
        "lower the learning rate of {role}'s policy",
        "take out an entropy bonus (verl: actor_rollout_ref.actor.entropy_coeff=0)",
        "check that the rollout engine serves the weights that are trained",
        remedies.KL_ANCHOR,
    ),
    "diversity_collapse": (
        "give the slots of {role} different prompts or temperatures",
        "reward the answers of each slot on its own, not the outcome for all",
        "sample {role} hotter (TRL: temperature; verl: actor_rollout_ref.rollout.temperature)",
        remedies.KL_ANCHOR,
    ),
    "uniform_siblings": (
        "read some siblings side by side: are they alike where they are wrong?",
        "sample {role} hotter, or give its slots different prompts",
    ),
    "lazy_role": (
        "reward {role} for its own part: for the verdict or the choice, not for the outcome",
        "train {role} on problems where its part decides (candidates that differ)",
        remedies.KL_ANCHOR,
    ),
    "rubber_stamp": (
        "reward {role} for verdicts that are right, not for the outcome of the workflow",
        "balance right and wrong answers in what {role} judges",
    ),
    "constant_output": (
        "shuffle the candidates that {role} chooses from",
        "train {role} on problems whose candidates differ",
    ),
    "copies_input": (
        "reward {role} for what it adds, not for the outcome of the workflow",
        "check that the prompt of {role} asks for more than to repeat",
    ),
    "echo_trap": (
        "leave out groups with equal rewards, keep those with the widest spread",
        "lower the learning rate of {role}'s policy and clip its gradient (TRL: max_grad_norm)",
        "use more and other prompts per step, fewer updates per rollout",
        remedies.KL_ANCHOR,
    ),
    "duplicate_rows": (
        "mask the rows that pad a batch to the number of devices before the loss",
        "hand every row over once per step, whatever the number of epochs",
    ),
    "logprob_mode_mismatch": (
        "compute both log-probabilities at the sampling temperature, on processed logits"
        " (vLLM: logprobs_mode='processed_logprobs')",
    ),
    "stale_denominator": (
        "recompute the old log-probabilities of {role} right before its first mini-batch",
    ),
    "adapter_not_served": (
        "check that the rollout engine serves the adapter of {role}, and this step's version of it",
    ),
    "no_updates": (
        "check that the parameters of {role}'s policy are trainable and in the optimizer",
        "check that rows of {role} reach the loss with advantages other than zero",
    ),
    "truncation": (
        "raise the length limit of {role} (TRL: max_completion_length; verl:"
        " data.max_response_length), or find out why its answers have grown",
    ),
    "signal_loss": (
        "leave out groups with equal rewards and sample others (verl: filter_groups)",
        "train on problems that are neither always nor never solved",
    ),
    "echo_suspected": (
        "leave out groups with equal rewards",
        "use more and other prompts per step, fewer updates per rollout",
    ),
}
"""What to do about a finding, most effective first; ``{role}`` is filled in."""

_TITLES: Mapping[str, str] = {
    "length_inflation": "answers x{ratio:.1f} since step {onset}",
    "sp_role_capture": "writes like {toward} since step {onset}",
    "gradient_amplification": "slots amplified, x{ratio:.0f} since step {onset}",
    "role_drift": "moves x{ratio:.0f} per step since step {onset}",
    "policy_drift": "moving together, x{ratio:.0f} since step {onset}",
    "reward_hacking": "paid for length since step {onset}",
    "accuracy_cliff": "accuracy {base:.2g} -> {value:.2g} since step {onset}",
    "reward_drop": "reward {base:.2g} -> {value:.2g} since step {onset}",
    "entropy_collapse": "entropy x{ratio:.2g} and no gain since step {onset}",
    "entropy_explosion": "entropy x{ratio:.1f} since step {onset}",
    "diversity_collapse": "same wrong answers since step {onset}",
    "uniform_siblings": "slots write alike since step {onset}",
    "lazy_role": "its output has stopped mattering since step {onset}",
    "rubber_stamp": "one verdict for all since step {onset}",
    "constant_output": "one answer for all since step {onset}",
    "copies_input": "copies its input since step {onset}",
    "echo_trap": "echo trap since step {onset}",
    "duplicate_rows": "rows are there twice since step {onset}",
    "logprob_mode_mismatch": "log-probs of two kinds since step {onset}",
    "stale_denominator": "stale denominator since step {onset}",
    "adapter_not_served": "adapter not served since step {onset}",
    "no_updates": "not updated since step {onset}",
    "truncation": "answers are cut since step {onset}",
    "signal_loss": "nothing to learn from since step {onset}",
    "echo_suspected": "{value:.0f} signs of an echo trap since step {onset}",
}


@dataclass(slots=True)
class _Open:
    alert: Alert
    clean: int = 0


class AlertBook:
    """Which alerts are open, per detector and role.

    Args:
        workflow: For the role's policy.
        config: Which detectors stop the run, and how many clean records close an alert.
        host: Trainer that is watched, for the advice; see :func:`roledrift.detect.remedies.family`.
    """

    def __init__(self, workflow: Workflow, config: Config, *, host: str = "") -> None:
        self._workflow = workflow
        self._host = remedies.family(host)
        self._checkpoints: tuple[Checkpoint, ...] = ()
        self._stop_on = frozenset(config.stop_on)
        self._close_after = max(config.close_after, 1)
        self._open: dict[tuple[str, str], _Open] = {}

    @property
    def open(self) -> Mapping[str, Alert]:
        """Open alerts by id."""
        return {one.alert.id: one.alert for one in self._open.values()}

    def note(self, checkpoints: tuple[Checkpoint, ...]) -> None:
        """The checkpoints that are there now; empty for: no news."""
        self._checkpoints = checkpoints or self._checkpoints

    def see(self, step: int, verdict: Verdict) -> Alert | None:
        """Take one verdict; the transition it causes, if any.

        ``drift`` opens or escalates, ``ok`` counts toward closing, ``watch`` ends such a count, and
        ``no verdict`` says nothing.
        """
        if verdict.state == "no verdict":
            return None
        key = (verdict.detector, verdict.role)
        known = self._open.get(key)
        if verdict.state == "drift":
            return self._drift(step, verdict, known)
        if known is None:
            return None
        known.clean = known.clean + 1 if verdict.state == "ok" else 0
        if known.clean < self._close_after:
            return None
        del self._open[key]
        return closed(known.alert, step, f"clean for {known.clean} records: {verdict.reason}")

    def _drift(self, step: int, verdict: Verdict, known: _Open | None) -> Alert | None:
        if known is None:
            onset = step if verdict.onset is None else verdict.onset
            alert = self._alert(step, verdict, onset)
            self._open[verdict.detector, verdict.role] = _Open(alert)
            return alert
        known.clean = 0
        if known.alert.level == "ERROR" or _level(verdict) != "ERROR":
            return None
        # The id is fixed when the alert opens: a later estimate of the onset must not rename it.
        known.alert = replace(self._alert(step, verdict, known.alert.onset), state="escalated")
        return known.alert

    def _alert(self, step: int, verdict: Verdict, onset: int) -> Alert:
        finding = verdict.finding or verdict.detector
        level = _level(verdict)
        known = verdict.role in self._workflow.role_names
        clean = [one for one in self._checkpoints if one.step < onset]
        checkpoint = max(clean, key=lambda one: one.step, default=None)
        return Alert(
            id=alert_id(verdict.detector, verdict.role, onset),
            detector=verdict.detector,
            finding=finding,
            role=verdict.role,
            policy=self._workflow.policy_of(verdict.role) if known else "",
            level=level,
            state="open",
            step=step,
            onset=onset,
            title=title(verdict, finding, onset),
            text=_sentence(verdict.reason),
            statistic=verdict.statistic,
            value=verdict.value,
            threshold=verdict.threshold,
            baseline=verdict.baseline,
            advice=(
                remedies.go_back(onset, checkpoint, self._host),
                *_advice(finding, verdict, self._host),
            ),
            stops=level == "ERROR" and verdict.detector in self._stop_on,
            evidence=verdict.evidence,
            chance=verdict.chance,
            checkpoint=checkpoint,
        )


def _level(verdict: Verdict) -> Level:
    # A detector that has only part of its evidence names a lesser finding than its own.
    return "ERROR" if verdict.finding in ("", verdict.detector) else "WARN"


def closed(alert: Alert, step: int, why: str) -> Alert:
    """The transition that closes ``alert``."""
    return replace(
        alert,
        level="INFO",
        state="closed",
        step=step,
        title=_short(f"{alert.role}: {alert.finding} is over"),
        text=_sentence(why),
        advice=(),
        stops=False,
        pairs=(),
        checkpoint=None,
    )


def title(verdict: Verdict, finding: str, onset: int) -> str:
    """One short line, below ``TITLE_LIMIT`` characters."""
    value, base = verdict.value, verdict.baseline or 0.0
    template = _TITLES.get(finding)
    if template is None or value is None or ("{ratio" in template and not base):
        return _short(f"{verdict.role}: {finding} since step {onset}")
    ratio = value / base if base else 0.0
    told = template.format(
        ratio=ratio, value=value, base=base, onset=onset, toward=verdict.toward or "another role"
    )
    return _short(f"{'all roles' if verdict.role == EVERYONE else verdict.role}: {told}")


def _short(line: str) -> str:
    return line if len(line) < TITLE_LIMIT else line[: TITLE_LIMIT - 2] + "…"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." if text else ""


def _advice(finding: str, verdict: Verdict, host: str) -> tuple[str, ...]:
    known = (remedies.told(one, role=verdict.role, host=host) for one in ADVICE.get(finding, ()))
    missing = (f"measure {need}, so that the cause can be named" for need in verdict.needs)
    return (*known, *missing)
