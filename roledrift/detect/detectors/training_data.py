"""``training_data``: facts about the rows that are trained on.

Each rule is a fact about single records that holds for some in a row. What these facts mean does
not depend on the start of the run, so they are judged from the first step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.scales import SHARES
from roledrift.detect.evidence.streak import Streak
from roledrift.detect.evidence.streams import Stream
from roledrift.detect.sources import BENCHMARK, DAPO, GRPO, PUBLIC_LOGS
from roledrift.detect.units import mean_of, reader, stat_of, units
from roledrift.judgement import Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "training_data"
_PATIENCE = 3
_NOTHING = 5e-6
"""Largest change of a log-probability, in nats, that is rounding."""

_SOLVED = 0.9
_UNSOLVED = 0.1

TRUNCATED = Stream("truncated", SHARES, 1, 0.15, 0.05, 0.03, 0.3, reader("truncated"))
"""0.15 on the arcsine scale is from 0 to 2 %, or from 10 % to 21 %."""


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Settings of ``training_data``.

    Attributes:
        duplicates: Share of rows that occur twice.
        truncated: Share of responses cut off by the length limit.
        equal_groups: Share of advantage groups whose rewards are all equal.
    """

    duplicates: float = 0.01
    truncated: float = 0.5
    equal_groups: float = 0.98


class Fact(NamedTuple):
    """What one rule says about one role in one record.

    Attributes:
        statistic: What was looked at, with its ``value``.
        holds: True if the finding's condition is met.
        reason: What that means.
    """

    statistic: str
    value: float
    holds: bool
    reason: str = ""


_FINE = Fact("", 0.0, False)

Rule = Callable[[StepRecord, str, DataSettings], Fact | None]


def _share(name: str, template: str, least: Callable[[DataSettings], float]) -> Rule:
    """The rule that a share is at least what the settings say; 0 there switches it off."""

    def rule(record: StepRecord, role: str, settings: DataSettings) -> Fact | None:
        share = _known(record, role, name)
        if share is None:
            return None
        holds = share >= least(settings) > 0
        return Fact(name, share, True, template.format(share)) if holds else _FINE

    return rule


def _nonfinite(record: StepRecord, role: str, _: DataSettings) -> Fact | None:
    stat = stat_of(record, role, "nonfinite")
    if stat is None or not stat.n:
        return None
    text = f"{stat.mean:.3g} tokens per response have a log-probability that is not finite"
    return Fact("nonfinite", stat.mean, not stat.mean <= 0, text)


def _updates(record: StepRecord, role: str, _: DataSettings) -> Fact | None:
    if record.totals.get("lr") == 0.0:
        return Fact("lr", 0.0, True, "the learning rate is 0")
    updates, rows = stat_of(record, role, "updates"), stat_of(record, role, "advantage")
    equal, clipped, peak, k3 = (
        _known(record, role, name)
        for name in ("zero_variance", "clip_fraction", "update.peak", "update.k3")
    )
    learns = equal is None or equal < _SOLVED
    # Rows that are left out of the loss move all the same where another role trains the policy.
    still = peak is None or peak < _NOTHING
    if updates is not None and updates.high == 0 and rows is not None and rows.n and still:
        return Fact("updates", 0.0, True, f"{rows.n:.0f} rows and no optimizer step")
    changed = "the optimizer steps have changed nothing"
    if peak is not None:
        text = f"{changed}, although there was something to learn"
        return Fact("update.peak", peak, learns and still, text)
    if k3 is not None and k3 == 0.0:
        return Fact("update.k3", k3, learns, changed)
    if clipped is not None and clipped >= 0.999:
        return Fact("clip_fraction", clipped, True, "every token is clipped")
    return None if updates is None and k3 is None and clipped is None else _FINE


def _signal(record: StepRecord, role: str, settings: DataSettings) -> Fact | None:
    share = _known(record, role, "zero_variance")
    if share is None:
        return None
    solved = record.totals.get("accuracy", record.mean(role, "reward"))
    solved = record.totals.get("reward") if solved is None and role == EVERYONE else solved
    if solved is not None and solved >= _SOLVED:
        return _FINE  # Everything is right: the task is solved, and that is no fault.
    if not share >= settings.equal_groups > 0:
        return _FINE
    text = f"{share:.0%} of the advantage groups have equal rewards and teach nothing"
    if solved is not None and solved <= _UNSOLVED:
        text += ": almost nothing is solved, the task is too hard"
    return Fact("zero_variance", share, True, text)


def _known(record: StepRecord, role: str, name: str) -> float | None:
    value = mean_of(record, role, name)
    return value if value is not None and math.isfinite(value) else None


RULES: dict[str, Rule] = {
    "nonfinite": _nonfinite,
    "duplicate_rows": _share(
        "duplicates", "{:.1%} of the rows occur twice", lambda settings: settings.duplicates
    ),
    "no_updates": _updates,
    "truncation": _share(
        "truncated",
        "{:.0%} of the responses were cut off by the length limit",
        lambda settings: settings.truncated,
    ),
    "signal_loss": _signal,
}
"""Finding to rule, gravest first: of several findings about one role the first is reported."""
_OF_OUTPUTS = ("nonfinite", "truncation")
"""What also holds for a role that is not trained."""


class _TrainingData:
    def __init__(self, context: Context) -> None:
        self._settings: DataSettings = context.settings
        acts = {role.name for role in context.workflow.roles if not role.trained}
        judged = units(context.workflow)
        self._rules = {
            role: [name for name in RULES if role not in acts or name in _OF_OUTPUTS]
            for role in judged
        }
        self._streaks: dict[str, dict[str, Streak]] = {role: {} for role in judged}
        self._cut = {role: context.board.watch(role, TRUNCATED) for role in judged}

    def update(self, record: StepRecord) -> Iterator[Verdict | None]:
        gravest = {role: self._gravest(role, record) for role in self._streaks}
        together = bool(self._streaks.get(EVERYONE))
        for role, streaks in self._streaks.items():
            fact, cut = gravest[role], self._cut[role]
            if not streaks:
                if role != EVERYONE and not together:
                    why = "nothing that could be checked was recorded"
                    yield no_verdict(NAME, role, why, "rows")
            elif fact is None and cut.complete and cut.now >= 0.1:
                why = f"responses cut off by the length limit: {cut.typical:.0%} -> {cut.now:.0%}"
                yield cut.verdict(NAME, why, "truncation", "suspicious")
            elif fact is None and record.groups:
                yield _none_of(role, tuple(streaks))
            else:
                yield fact

    def _gravest(self, role: str, record: StepRecord) -> Verdict | None:
        """The first finding that has held for some records in a row."""
        streaks, gravest = self._streaks[role], None
        for finding in self._rules[role]:
            fact = RULES[finding](record, role, self._settings)
            if fact is None:
                continue
            streak = streaks.setdefault(finding, Streak())
            if streak.observe(record.step, fact.holds) >= _PATIENCE and gravest is None:
                gravest = Verdict(
                    NAME,
                    role,
                    "drift",
                    finding,
                    fact.statistic,
                    fact.value,
                    onset=streak.onset,
                    reason=fact.reason,
                    severity="input problem",
                )
        return gravest


@lru_cache(maxsize=256)
def _none_of(role: str, checked: tuple[str, ...]) -> Verdict:
    names = ", ".join(name for name in RULES if name in checked)
    return Verdict(NAME, role, "ok", reason=f"none of {names}")


def _finding(name: str, title: str, about: str, *advice: str, sources: tuple[str, ...]) -> Finding:
    return Finding(name, title, about, "input", "input problem", advice, sources)


CARD = Card(
    name=NAME,
    about="Checks facts about the rows that are trained on, from the first step.",
    findings=(
        _finding(
            "nonfinite",
            "{who} has had non-finite log-probabilities since step {onset}",
            "Some tokens have a log-probability or entropy that is not finite.",
            "lower the learning rate and check the precision in which logits are computed",
            sources=("Micikevicius et al. (2018), Mixed Precision Training, arXiv 1710.03740",),
        ),
        _finding(
            "duplicate_rows",
            "{who} has been trained on duplicate rows since step {onset}",
            "Some rows are trained on twice.",
            "mask the rows that pad a batch to the number of devices before the loss",
            "hand every row over once per step, whatever the number of epochs",
            sources=("pytorch/pytorch#25162: samplers that pad with copies", BENCHMARK),
        ),
        _finding(
            "no_updates",
            "The policy of {the} has not been updated since step {onset}",
            "The role has rows to learn from, and its policy does not change.",
            "check that the parameters of {role}'s policy are trainable and in the optimizer",
            "if they are meant to stay as they are, say so: Role('{role}', trained=False)",
            "check that rows of {role} reach the loss with advantages other than zero",
            sources=(BENCHMARK,),
        ),
        _finding(
            "truncation",
            "Responses of {the} have been truncated since step {onset}",
            "Responses are cut off by the length limit.",
            "raise the length limit of {role} (TRL: max_completion_length; verl:"
            " data.max_response_length), or find out why its responses have grown",
            sources=(f"{DAPO}: overlong responses", PUBLIC_LOGS),
        ),
        _finding(
            "signal_loss",
            "{who} has had nothing to learn from since step {onset}",
            "Nearly all advantage groups have equal rewards, and the task is not solved.",
            "leave out groups with equal rewards and sample others (verl: filter_groups)",
            "train on problems that are neither always nor never solved",
            sources=(f"{DAPO}: dynamic sampling", GRPO, PUBLIC_LOGS),
        ),
    ),
    make=_TrainingData,
    reads=("duplicates", "updates", "truncated", "zero_variance", "nonfinite"),
    needs=("rows with rewards and advantage groups",),
    settings=DataSettings,
    order=1,
)
