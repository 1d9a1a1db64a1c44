"""``reward_components``: which of several reward functions a run really learns from.

What a component contributes to the advantage is its spread within the batch (the standard deviation
that trainers log), not its mean. Which component pays for the result and which for the form is told
by its name; without a component that pays for results there is no verdict on the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import fmean

from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.course import LATE
from roledrift.detect.evidence.trend import Gain, Thinned
from roledrift.detect.sources import SKALSE
from roledrift.detect.units import known, not_logged, too_short, units
from roledrift.judgement import Severity, Verdict
from roledrift.metric_names import COMPONENT, COMPONENT_STD, pays_for_form, pays_for_outcome
from roledrift.records import StepRecord

NAME = "reward_components"
DOMINATES, DEAD, FORM = "component_dominates", "component_dead", "format_gaming"
_RECORDS = 50
_DOMINATES_RECORDS = 100
_FORM_RECORDS = 120
_SHARE = 0.7
_MOST = 0.9
_RECENT = 50
_SURE = 3.0
_TINY = 1e-12
_PATIENCE = 5


class _Component:
    """One reward function."""

    def __init__(self, name: str) -> None:
        self.name = name.removeprefix(COMPONENT)
        self.outcome, self.form = pays_for_outcome(name), pays_for_form(name)
        self.history = Thinned()
        self.first: int | None = None
        self.constant = True
        self.value = 0.0
        self._spreads: deque[float] = deque(maxlen=_RECENT)
        self._jumps: deque[float] = deque(maxlen=_RECENT)

    def add(self, step: int, mean: float, spread: float | None) -> None:
        if self.first is None:
            self.first = step
        else:
            self._jumps.append((mean - self.value) ** 2 / 2)
            self.constant = self.constant and mean == self.value and not spread
        self.value = mean
        self.history.add(step, mean)
        if spread is not None:
            self._spreads.append(spread * spread)

    @property
    def variance(self) -> float:
        """Of single rewards where their spread is logged, else of means between steps."""
        values = self._spreads or self._jumps
        return fmean(values) if values else 0.0

    @property
    def measured(self) -> bool:
        """Whether its spread within the batch is logged."""
        return bool(self._spreads)

    @property
    def dead(self) -> bool:
        """Whether it has never paid anything."""
        return self.constant and abs(self.value) <= _TINY


class _RewardComponents:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._units = units(context.workflow)
        self._absent = not_logged(NAME, self._workflow, "second reward function")
        self._seen: dict[str, dict[str, _Component]] = {}
        self._held: dict[str, tuple[str, int, int]] = {}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts, short = [], False
        for unit in self._units:
            parts = self._parts(record, unit)
            if len(parts) < 2:
                continue
            if min(part.history.records for part in parts.values()) < _RECORDS:
                short = True
                continue
            verdicts.append(self._judge(unit, record.step, parts))
        if verdicts:
            return verdicts
        if short:
            return [too_short(NAME, self._workflow, _RECORDS)]
        several = any(len(parts) > 1 for parts in self._seen.values())
        return [] if several else [self._absent]

    def _parts(self, record: StepRecord, unit: str) -> Mapping[str, _Component]:
        for name in record.groups.get(unit, ()):
            if not name.startswith(COMPONENT):
                continue
            mean = known(record, unit, name)
            if mean is not None:
                parts = self._seen.setdefault(unit, {})
                spread = known(record, unit, COMPONENT_STD + name.removeprefix(COMPONENT))
                parts.setdefault(name, _Component(name)).add(record.step, mean, spread)
        return self._seen.get(unit, {})

    def _judge(self, unit: str, step: int, parts: Mapping[str, _Component]) -> Verdict:
        finding, severity, since, reason = self._finding(list(parts.values()))
        before, held, onset = self._held.get(unit, ("", 0, step))
        held = held + 1 if finding and finding == before else int(bool(finding))
        onset = onset if held > 1 else since
        self._held[unit] = (finding, held, onset)
        drift = held >= _PATIENCE
        return Verdict(
            detector=NAME,
            role=unit,
            state="drift" if drift else "watch" if finding else "ok",
            finding=finding if drift else "",
            statistic="reward",
            onset=onset if drift else None,
            reason=reason,
            severity=severity if drift else None,
        )

    def _finding(self, parts: list[_Component]) -> tuple[str, Severity, int, str]:
        outcomes = [part for part in parts if part.outcome]
        others = [part for part in parts if not part.outcome]
        dead = [part for part in outcomes if part.dead]
        if dead and len(dead) == len(outcomes):
            names = ", ".join(part.name for part in dead)
            text = f"{names} has paid 0 in every response"
            return DEAD, "input problem", dead[0].first or 0, text
        gaming = self._gaming(outcomes, others)
        if gaming is not None:
            return gaming
        total = sum(part.variance for part in parts)
        text = "shares of the spread: " + ", ".join(
            f"{part.name} {part.variance / total:.0%}" for part in parts if total > 0
        )
        largest = max(others, key=lambda part: part.variance, default=None)
        if largest is None or not outcomes or total <= 0:
            return "", "suspicious", 0, text
        share = largest.variance / total
        late = min(part.history.records for part in parts) >= _DOMINATES_RECORDS
        if late and share >= (_SHARE if largest.measured else _MOST):
            onset = int(largest.history.arrays()[0][0])
            return DOMINATES, "suspicious", onset, text
        return "", "suspicious", 0, text

    def _gaming(
        self, outcomes: Sequence[_Component], others: Sequence[_Component]
    ) -> tuple[str, Severity, int, str] | None:
        """Whether what is paid for form rises late in the run, and what is paid for results not."""
        gains = [(part, part.history.gain(LATE)) for part in others if part.form]
        results = [part.history.gain(LATE) for part in outcomes]
        if not results or any(gain is None for gain in results):
            return None
        if any(part.history.records < _FORM_RECORDS for part in (*outcomes, *others)):
            return None
        if any(gain is not None and gain.change > _SURE * gain.error for gain in results):
            return None
        for part, gain in gains:
            if gain is not None and _rises(part, gain):
                text = (
                    f"since step {gain.first:.0f} {part.name} has gained {gain.change:+.3g}, and "
                    + ", ".join(
                        f"{outcome.name} {got.change:+.3g}"
                        for outcome, got in zip(outcomes, results, strict=True)
                        if got is not None
                    )
                )
                return FORM, "suspicious", int(gain.first), text
        return None


def _rises(part: _Component, gain: Gain) -> bool:
    low, high = part.history.range()
    return gain.change > _SURE * gain.error and gain.change >= 0.2 * max(high - low, _TINY)


_R1 = "DeepSeek-AI (2025), DeepSeek-R1, arXiv 2501.12948: accuracy and format rewards"

CARD = Card(
    name=NAME,
    about=(
        "Where several reward functions are logged: which of them the advantages come from, "
        "whether the one that pays for results pays anything, and whether only form is learned."
    ),
    findings=(
        Finding(
            DEAD,
            "No response of {the} has been paid for its result since step {onset}",
            "The reward function that pays for results has given 0 to every response.",
            "input",
            "input problem",
            (
                "run the reward function by hand on a right answer: it may not parse the format",
                "use easier problems, or train on demonstrations first",
            ),
            (_R1,),
        ),
        Finding(
            FORM,
            "Only the form of the responses of {the} has improved since step {onset}",
            "What is paid for form rises, and what is paid for results does not.",
            "input",
            "suspicious",
            (
                "pay for form only where the result is right, or weigh it less",
                "read some responses that earn the full reward for form",
            ),
            (SKALSE, _R1),
        ),
        Finding(
            DOMINATES,
            "Another reward than that for results has driven {the} since step {onset}",
            "Most of the spread of the reward comes from a component that does not pay for "
            "results.",
            "input",
            "suspicious",
            (
                "weigh the components so that results have the largest spread (TRL:"
                " reward_weights)",
                "drop a component once it is satisfied",
            ),
            (SKALSE,),
        ),
    ),
    make=_RewardComponents,
    reads=("reward",),
    needs=("means of several reward functions",),
    order=3,
)
