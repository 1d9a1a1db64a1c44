"""``hygiene``: is what the other detectors read what they think it is?

Each rule is a fact about one record, not a drift from a baseline: a table from the finding's name
to a function. A finding is told as a warning once it has persisted; while it lasts, verdicts that
rest on the statistics it spoils (:data:`SPOILS`) are withheld by the panel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from roledrift.config import Config
from roledrift.detect.abstaining import no_verdict
from roledrift.detect.baseline import measured
from roledrift.detect.payoff import Payoff
from roledrift.records import StepRecord, Verdict
from roledrift.thresholds import HygieneConfig
from roledrift.workflow import Workflow

NAME = "hygiene"

_OWN_STEPS = 0.55
"""Share of the movement of an iteration that its own mini-batches may lie from the rollouts."""

_NOTHING = 1e-10
"""Movement (k3) that is rounding: a policy that is scored twice by unlike code moves as much."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What one rule says about one role in one record.

    Attributes:
        statistic: What was looked at.
        value: Its value; ``threshold`` from which on it is a finding.
        there: True if it is.
        told: What that means, in words.
    """

    statistic: str
    value: float
    threshold: float
    there: bool
    told: str


_FINE = Suspicion("", 0.0, 0.0, False, "")
"""Checked, and nothing found: what nearly every rule says of nearly every record."""

Rule = Callable[[StepRecord, str, HygieneConfig], Suspicion | None]


@dataclass(frozen=True, slots=True)
class Spoil:
    """What a finding makes useless.

    Attributes:
        statistics: Names; a name that ends in ``.`` stands for all that begin with it, an empty one
            for all.
        drift: Also verdicts of drift are withheld. False where the finding can only hide a drift:
            lengths that are cut off look shorter than they are, never longer.
    """

    statistics: tuple[str, ...]
    drift: bool = True

    def touches(self, reads: frozenset[str]) -> bool:
        """Whether any of the statistics read is among them."""
        return any(
            name == spoilt or ((not spoilt or spoilt.endswith(".")) and name.startswith(spoilt))
            for spoilt in self.statistics
            for name in reads
        )


SPOILS: Mapping[str, Spoil] = {
    "duplicate_rows": Spoil(("",)),
    "logprob_mode_mismatch": Spoil(("rollout.", "old.")),
    "stale_denominator": Spoil(("old.",)),
    "adapter_not_served": Spoil(("rollout.", "old.", "update.")),
    "truncation": Spoil(("length",), drift=False),
}
"""Finding -> what it spoils; findings that are not here are told and spoil nothing."""


def _duplicates(record: StepRecord, role: str, settings: HygieneConfig) -> Suspicion | None:
    share = measured(record.mean(role, "duplicates"))
    if share is None:
        return None
    if not share >= settings.duplicates > 0:
        return _FINE
    told = f"{share:.1%} of the rows are there twice"
    return Suspicion("duplicates", share, settings.duplicates, True, told)


def _mode(record: StepRecord, role: str, _: HygieneConfig) -> Suspicion | None:
    for kind in ("rollout", "old"):
        share = measured(record.mean(role, f"{kind}.refused"))
        if share is not None:
            label = record.labels.get(kind, "two temperatures")
            told = f"{kind} compares log-probabilities that differ without any drift ({label})"
            return Suspicion(f"{kind}.refused", share, 0.0, share > 0, told)
    found = measured(record.mean(role, "rollout.k3"))
    return None if found is None else _FINE


def _stale(record: StepRecord, role: str, settings: HygieneConfig) -> Suspicion | None:
    moved = measured(record.mean(role, "old.k3"))
    if moved is None or not record.labels.get("old", "").endswith(", 0 steps between"):
        return None
    if not moved >= settings.stale:
        return _FINE
    told = f"no optimizer step lies between, yet the ratio's denominator differs by {moved:.2g}"
    return Suspicion("old.k3", moved, settings.stale, True, f"{told} (k3)")


def _served(record: StepRecord, role: str, settings: HygieneConfig) -> Suspicion | None:
    rollout, base = (measured(record.mean(role, f"{k}.k3")) for k in ("rollout", "reference"))
    if rollout is None or base is None or base < settings.moved:
        return None if rollout is None else _sampled(record, role, rollout, settings)
    share = rollout / base
    told = f"rollouts are x{share:.2f} as far from the trained policy as the base model is"
    return Suspicion("rollout.k3", rollout, base / 2, share >= 0.5, told)


def _sampled(
    record: StepRecord, role: str, rollout: float, settings: HygieneConfig
) -> Suspicion | None:
    """Is the policy farther from its rollouts than its own optimizer steps can take it?

    Over the mini-batches of an iteration the mean distance from the start is at most half of that
    at the end: ``mean t / T = 1/2`` for steps in random directions (``k3`` grows with ``t``), 1/3
    for steps in one direction (with ``t²``).
    """
    moved = measured(record.mean(role, "update.k3"))
    if moved is None:
        return None
    threshold = max(settings.stale, _OWN_STEPS * moved)
    if not rollout >= threshold:
        return _FINE
    told = (
        f"rollouts differ from the policy by {rollout:.2g} (k3) where its own steps of the "
        f"iteration account for {moved / 2:.2g} at most: the adapter is not served, or stale, or "
        "sampled at another temperature"
    )
    return Suspicion("rollout.k3", rollout, threshold, True, told)


def _updates(record: StepRecord, role: str, _: HygieneConfig) -> Suspicion | None:
    updates = record.stat(role, "updates")
    moved, clipped = record.mean(role, "update.k3"), record.mean(role, "clip_fraction")
    if updates is not None and updates.high == 0:
        rows = record.counted(role, "advantage")
        if rows is not None and rows[0]:
            return Suspicion("updates", 0.0, 1.0, True, f"{rows[0]:.0f} rows, no optimizer step")
    if moved is not None and moved < _NOTHING:
        told = "the optimizer step has changed nothing"
        return Suspicion("update.k3", moved, _NOTHING, True, told)
    if clipped is not None and clipped >= 0.999:
        return Suspicion("clip_fraction", clipped, 0.999, True, "every token is clipped")
    if updates is None and measured(moved) is None and clipped is None:
        return None
    return _FINE


def _truncated(record: StepRecord, role: str, settings: HygieneConfig) -> Suspicion | None:
    share = measured(record.mean(role, "truncated"))
    if share is None:
        return None
    if not share >= settings.truncated > 0:
        return _FINE
    told = f"{share:.0%} of the answers were cut by the length limit"
    return Suspicion("truncated", share, settings.truncated, True, told)


def _signal(record: StepRecord, role: str, settings: HygieneConfig) -> Suspicion | None:
    share = measured(record.mean(role, "zero_variance"))
    if share is None:
        return None
    if not share >= settings.signal > 0:
        return _FINE
    told = f"{share:.0%} of the advantage groups have equal rewards and teach nothing"
    return Suspicion("zero_variance", share, settings.signal, True, told)


RULES: Mapping[str, Rule] = {
    "duplicate_rows": _duplicates,
    "logprob_mode_mismatch": _mode,
    "adapter_not_served": _served,
    "stale_denominator": _stale,
    "no_updates": _updates,
    "truncation": _truncated,
    "signal_loss": _signal,
}
"""Gravest first: of several findings about one role the first is told."""


class Hygiene:
    """Runs every rule on every role.

    Args:
        workflow: Roles.
        config: Its section.
    """

    name = NAME

    def __init__(self, workflow: Workflow, config: Config) -> None:
        self._settings = config.detectors.hygiene
        self._payoff = Payoff(config.baseline)
        self._roles = workflow.role_names
        self._streaks: dict[str, dict[str, tuple[int, int]]] = {
            role: {} for role in workflow.role_names
        }
        self._known: dict[str, set[str]] = {role: set() for role in workflow.role_names}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role: the gravest finding, or that there is none."""
        self._payoff.see(record)
        return [verdict for role in self._roles if (verdict := self._verdict(role, record))]

    def _verdict(self, role: str, record: StepRecord) -> Verdict | None:
        seen: list[tuple[str, Suspicion, int, int]] = []
        known, streaks, settings = self._known[role], self._streaks[role], self._settings
        for finding, rule in RULES.items():
            found = rule(record, role, settings)
            if found is None:
                continue
            known.add(finding)
            if not found.there or (finding == "signal_loss" and self._payoff.course == "rose"):
                streaks.pop(finding, None)
                continue
            times, onset = streaks.get(finding, (0, record.step))
            streaks[finding] = (times + 1, onset)
            seen.append((finding, found, times + 1, onset))
        if not known:
            return no_verdict(NAME, role, "nothing that could be checked was recorded")
        patience = max(self._settings.patience, 1)
        lasting = [one for one in seen if one[2] >= patience]
        if not seen:
            checked = ", ".join(name for name in RULES if name in known)
            return Verdict(NAME, role, "ok", reason=f"none of {checked}") if record.groups else None
        finding, found, times, onset = (lasting or seen)[0]
        others = ", ".join(one[0] for one in lasting[1:])
        return Verdict(
            detector=NAME,
            role=role,
            state="drift" if lasting else "watch",
            finding=finding if lasting else "",
            statistic=found.statistic,
            value=found.value,
            threshold=found.threshold,
            onset=onset,
            reason=found.told
            + (f"; also {others}" if others else "")
            + ("" if lasting else f"; seen {times} of {patience} times in a row"),
        )
