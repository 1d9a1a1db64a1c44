"""``accuracy_cliff``: the workflow solves clearly less than it already did.

It is the damage itself. Every series is judged by itself: the validation accuracy, the training
accuracy (else the reward), and each role that is graded on its own.

*Validation.* With reference ``q`` (the best mean of two neighbouring validations), and ``k`` of
``n`` problems solved now, the evidence is a mixture over the size of the fall of

    LR = (p / p0)^k ((1 - p) / (1 - p0))^(n - k),   p0 = 0.9 q,  p = f p0,  f in {0.75, 0.5, 0.15}

accumulated as in :mod:`roledrift.detect.evidence.process`. The problems are the same every time,
so the binomial variance is too large and the test is conservative. Where the record says which
problems were solved, the pairs that changed sides are counted too: of ``b`` lost and ``c`` gained,
at most 0.6 are losses in a healthy run (the best validation was a lucky one).

*Training.* Batches hold other problems every time, so the noise is measured from neighbours, and
the best of many noisy batches is believed less than it says.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from roledrift.detect.abstaining import waiting
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.evidence.course import outcome
from roledrift.detect.evidence.noise import Noise
from roledrift.detect.evidence.process import ChangeProcess
from roledrift.detect.evidence.streams import against
from roledrift.detect.sources import BENCHMARK, E_DETECTORS, PUBLIC_LOGS
from roledrift.judgement import Severity, State, Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE

NAME = "accuracy_cliff"
DROP = "reward_drop"

_FALLS = (0.75, 0.5, 0.15)
_NULL = 0.9
_LOST = 0.6
_LOSSES = (0.75, 0.9)
_HORIZON = 20.0
_UNKNOWN_N = 50
_LEAST_NOISE = 0.02
_HALF = 0.5


@dataclass(frozen=True, slots=True)
class CliffSettings:
    """Settings of ``accuracy_cliff``.

    Attributes:
        share: Share of the best accuracy whose lasting loss is a fall.
    """

    share: float = 0.25


@dataclass(slots=True)
class _Fall:
    """How a series stands.

    Attributes:
        now: Mean since the fall began, or the latest value.
        best: The reference; ``best_step``: when it was reached.
        onset: First value of the present fall; None without one.
        log: Log-evidence.
        luck: How far the best of so many values may be above what it is the best of.
    """

    now: float
    best: float
    best_step: int
    onset: int | None
    log: float
    luck: float = 0.0

    @property
    def share(self) -> float:
        best = self.best - self.luck
        return (best - self.now) / best if best > 0 else 0.0


class _Validations:
    """Validation accuracies on the same problems."""

    def __init__(self) -> None:
        self._ratios = [0.0] * (len(_FALLS) + len(_LOSSES))
        self._count = 0
        self._last = math.nan
        self._best: tuple[float, int, str] | None = None
        self._below: list[tuple[int, float]] = []
        self.fall: _Fall | None = None

    def observe(self, record: StepRecord) -> None:
        value = record.totals.get("val_accuracy")
        if value is None or not 0.0 <= value <= 1.0:
            return
        if self._best is not None:
            n = record.totals.get("val_n") or _UNKNOWN_N
            self._weigh(record.step, value, n, record.solved, self._best)
        self._count += 1
        smooth = fmean((value if math.isnan(self._last) else self._last, value))
        self._last = value
        if self._best is None or smooth > self._best[0]:
            self._best = (smooth, record.step, record.solved)

    def _weigh(
        self, step: int, value: float, n: float, solved: str, known: tuple[float, int, str]
    ) -> None:
        best, best_step, before = known
        p0 = min(max(_NULL * best, 0.5 / n), 1 - 0.5 / n)
        logs = [
            value * n * math.log(f) + (1 - value) * n * math.log((1 - f * p0) / (1 - p0))
            for f in _FALLS
        ]
        prior = _HORIZON / ((self._count + _HORIZON - 1) * (self._count + _HORIZON))
        self._ratios = [
            min((ratio + prior) * math.exp(min(log, 60.0)), 1e15)
            for ratio, log in zip(self._ratios, logs + _paired(before, solved), strict=True)
        ]
        counted = self._ratios if before and solved else self._ratios[: len(_FALLS)]
        self._below = [*self._below, (step, value)] if value < p0 else []
        now = fmean(below for _, below in self._below) if self._below else value
        onset = self._below[0][0] if self._below else None
        self.fall = _Fall(now, best, best_step, onset, math.log(max(fmean(counted), 1e-300)))


def _paired(before: str, now: str) -> list[float]:
    """Log likelihood ratios of the problems that changed sides."""
    if not before or len(before) != len(now):
        return [0.0] * len(_LOSSES)
    lost = sum(a == "1" and b == "0" for a, b in zip(before, now, strict=True))
    gained = sum(a == "0" and b == "1" for a, b in zip(before, now, strict=True))
    return [lost * math.log(p / _LOST) + gained * math.log((1 - p) / (1 - _LOST)) for p in _LOSSES]


class _Batches:
    """Accuracies or rewards of training batches."""

    def __init__(self) -> None:
        self._process = ChangeProcess()
        self._recent: deque[float] = deque(maxlen=5)
        self._noise = Noise(48)
        self._count = 0
        self._best: tuple[float, int] | None = None
        self.fall: _Fall | None = None

    def observe(self, step: int, value: float) -> None:
        self._noise.observe(value)
        self._recent.append(value)
        self._count += 1
        if len(self._recent) < 5:
            return
        recent = list(self._recent)
        mean = fmean(recent)
        if self._best is not None and self._noise.n >= 6:
            best, best_step = self._best
            noise = max(self._noise.sd, _LEAST_NOISE * max(abs(best), 1e-9))
            # The largest of k means of five exceeds their mean by about sqrt(2 log k) errors.
            luck = noise / math.sqrt(5) * math.sqrt(max(2 * math.log(self._count / 5), 1.0))
            self._process.observe(step, (best - luck - 0.1 * abs(best) - value) / (1.15 * noise))
            now = fmean(recent[-3:])
            onset, log = self._process.onset, self._process.log
            self.fall = _Fall(now, best, best_step, onset, log, luck)
        if self._best is None or mean > self._best[0]:
            self._best = (mean, step)


class _AccuracyCliff:
    def __init__(self, context: Context) -> None:
        self._share: float = context.settings.share
        self._board = context.board
        self._validations = _Validations()
        self._batches = _Batches()
        self._source = ""
        self._graded = {role: _Batches() for role in context.workflow.role_names}

    def update(self, record: StepRecord) -> Iterator[Verdict]:
        yield self._everyone(record)
        for role, batches in self._graded.items():
            value = record.mean(role, "correct")
            if value is not None and 0.0 <= value <= 1.0:
                batches.observe(record.step, value)
                if batches.fall is not None:
                    yield self._verdict(role, "correct", batches.fall, alone=True)

    def _everyone(self, record: StepRecord) -> Verdict:
        self._validations.observe(record)
        source, value = outcome(record)
        if value is not None and (not self._source or source == self._source):
            self._source = source
            self._batches.observe(record.step, value)
        validated, trained = self._validations.fall, self._batches.fall
        if validated is not None:
            # A fall in training counts as evidence for one of the validations.
            support = max(trained.log, 0.0) if trained is not None and validated.log > 1 else 0.0
            if trained is None or self._fallen(validated, support):
                return self._verdict(EVERYONE, "val_accuracy", validated, support)
        if trained is not None:
            return self._verdict(EVERYONE, self._source, trained, alone=validated is None)
        need = "one more validation, or more steps" if self._source else "an accuracy or a reward"
        return waiting(NAME, EVERYONE, need)

    def _fallen(self, fall: _Fall, support: float = 0.0) -> bool:
        enough = fall.log + support >= self._board.needed
        return enough and fall.onset is not None and fall.share >= self._share

    def _verdict(
        self, role: str, name: str, fall: _Fall, support: float = 0.0, *, alone: bool = False
    ) -> Verdict:
        fallen, needed = self._fallen(fall, support), self._board.needed
        # Training problems may have become harder, and a reward need not be what is solved.
        grave = (alone and fall.share >= _HALF) or name == "val_accuracy"
        word: State = "ok"
        if fallen:
            word = "drift"
        elif fall.onset is not None and fall.log >= needed / 2:
            word = "watch"
        words = {"val_accuracy": "validation accuracy", "accuracy": "training accuracy"}
        severity: Severity = "failing" if grave else "suspicious"
        return Verdict(
            NAME,
            role,
            word,
            (NAME if grave and name != "reward" else DROP) if fallen else "",
            statistic=name,
            value=fall.now,
            threshold=fall.best * (1 - self._share),
            baseline=fall.best,
            onset=fall.onset if word != "ok" else None,
            reason=(
                f"{words.get(name, name)} {fall.now:.3g}, best {fall.best:.3g} at step "
                f"{fall.best_step}; evidence {max(fall.log, 0.0):.1f}, {needed:.1f} needed"
            ),
            evidence=fall.log,
            chance=against(needed),
            severity=severity if fallen else None,
        )


CARD = Card(
    name=NAME,
    about=(
        "Watches what the workflow solves: validation and training accuracy, each by itself, "
        "against the best so far."
    ),
    findings=(
        Finding(
            NAME,
            "Accuracy has fallen from {base:.2f} to {value:.2f} since step {onset}",
            "The workflow solves clearly less than it already did.",
            "outcome",
            "failing",
            (
                "read what was found in the steps before: this is the damage, not the cause",
                "lower the learning rate (TRL: learning_rate; verl:"
                " actor_rollout_ref.actor.optim.lr)",
                "bound the step: a KL term (TRL: beta > 0) or a tighter clip (TRL: epsilon)",
            ),
            (f"{E_DETECTORS}: the evidence", BENCHMARK),
        ),
        Finding(
            DROP,
            "The reward has fallen from {base:.2f} to {value:.2f} since step {onset}",
            "The training reward has fallen; the problems may have become harder.",
            "outcome",
            "suspicious",
            ("record a validation accuracy: a reward also falls when the curriculum gets harder",),
            (f"{E_DETECTORS}: the evidence", PUBLIC_LOGS),
        ),
    ),
    make=_AccuracyCliff,
    reads=("val_accuracy", "accuracy", "reward", "correct"),
    needs=("an accuracy or a reward",),
    settings=CliffSettings,
    order=9,
)
