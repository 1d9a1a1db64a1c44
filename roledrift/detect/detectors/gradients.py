"""``gradients``: gradients that are not finite, exactly zero, vanishing, or spiking.

What is not finite or exactly zero is a fact. A norm that has fallen to a twentieth is compared with
the run itself, as is one that again and again is eight times its usual size and larger than any at
the start. One spike alone counts for nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from statistics import median

from roledrift.detect.abstaining import no_verdict
from roledrift.detect.cards import Card, Context, Finding
from roledrift.detect.detectors.entropy_collapse import gradient_norm
from roledrift.detect.evidence.scales import RATIOS
from roledrift.detect.evidence.streams import MINOR, Reader, Stream
from roledrift.detect.remedies import LOWER_RATE
from roledrift.detect.sources import GRPO
from roledrift.detect.units import mean_of, not_logged, units
from roledrift.judgement import Severity, Verdict
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

NAME = "gradients"
BROKEN, ZERO, VANISHING, SPIKES = (
    "gradient_nonfinite",
    "gradient_zero",
    "gradient_vanishing",
    "gradient_spikes",
)
_BROKEN = 3
_BROKEN_WITHIN = 100
_ZERO = 0.4
_ZERO_WITHIN = 25
_NEARLY_ALL = 0.9
_LEFT = 0.05
_TIMES = 8.0
_USUAL = 32
_LEAST_USUAL = 16
_SPIKES = 3
_SPIKES_WITHIN = 200
_SOLVED = 0.75
"""Share of right responses from which on groups of equal reward explain gradients of zero."""


class _Norms:
    """The gradient norms of one unit."""

    def __init__(self) -> None:
        self.count = 0
        self.usual: deque[float] = deque(maxlen=_USUAL)
        self.middle = math.nan
        self.largest = 0.0
        """Largest norm of the first records: a solved task has small norms, and ordinary ones now
        and then, which are no spikes."""
        self.zero: deque[tuple[int, bool]] = deque(maxlen=_ZERO_WITHIN)
        self.broken: deque[tuple[int, int]] = deque(maxlen=_BROKEN)
        self.spikes: deque[tuple[int, int, float]] = deque(maxlen=_SPIKES)
        self.last = 0.0

    def add(self, step: int, norm: float | None, broken: bool) -> None:
        self.count += 1
        if broken or (norm is not None and not math.isfinite(norm)):
            self.broken.append((self.count, step))
        if norm is None or not math.isfinite(norm):
            return
        self.last = norm
        self.zero.append((step, norm == 0.0))
        if norm <= 0:
            return
        if len(self.usual) >= _LEAST_USUAL:
            if self.count % 4 == 0 or math.isnan(self.middle):
                self.middle = median(self.usual)
            if norm >= _TIMES * self.middle and norm > self.largest:
                self.spikes.append((self.count, step, norm / self.middle))
        else:
            self.largest = max(self.largest, norm)
        self.usual.append(norm)


class _Gradients:
    def __init__(self, context: Context) -> None:
        self._workflow, self._course = context.workflow, context.course
        self._units = [
            unit for unit in units(self._workflow) if _has_gradients(self._workflow, unit)
        ]
        why = "does not apply: nothing trains the policy of this role"
        still = [unit for unit in units(self._workflow) if unit not in self._units]
        self._still = tuple(no_verdict(NAME, role, why) for role in still)
        fall = Stream(
            "grad_norm",
            RATIOS,
            -1,
            math.log(2),
            0.4,
            0.15,
            0.3,
            _reader(self._workflow),
            weight=MINOR,
        )
        self._falls = {unit: context.board.watch(unit, fall) for unit in self._units}
        self._norms: dict[str, _Norms] = {}
        self._absent = not_logged(NAME, self._workflow, "gradient norm")

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        verdicts = list(self._still)
        for unit in self._units:
            norm = _norm(record, unit, self._workflow)
            broken = mean_of(record, unit, "nonfinite_gradients")
            loss = mean_of(record, unit, "pg_loss")
            # Its gradient is not finite either, whether a log says so or not.
            lost = loss is not None and not math.isfinite(loss)
            if norm is None and broken is None and not lost:
                continue
            state = self._norms.setdefault(unit, _Norms())
            state.add(record.step, norm, bool(broken) or lost)
            verdicts.append(self._judge(unit, state))
        if not self._norms:
            return [*verdicts, self._absent]
        return verdicts

    def _judge(self, unit: str, state: _Norms) -> Verdict:
        finding, severity, onset, reason = self._finding(unit, state)
        return Verdict(
            detector=NAME,
            role=unit,
            state="drift" if finding else "ok",
            finding=finding,
            statistic="grad_norm",
            value=state.last,
            onset=onset,
            reason=reason,
            severity=severity if finding else None,
        )

    def _finding(self, unit: str, state: _Norms) -> tuple[str, Severity, int | None, str]:
        losing = self._course.losing
        if len(state.broken) == _BROKEN and state.count - state.broken[0][0] < _BROKEN_WITHIN:
            every = state.broken[-1][0] - state.broken[0][0] == _BROKEN - 1
            steps = ", ".join(str(step) for _, step in state.broken)
            severity: Severity = "failing" if every else "input problem"
            return BROKEN, severity, state.broken[0][1], f"not finite at steps {steps}"
        zeros = [step for step, zero in state.zero if zero]
        share = len(zeros) / _ZERO_WITHIN
        level = self._course.level
        solved = level is not None and level >= _SOLVED
        if len(state.zero) == _ZERO_WITHIN and share >= _ZERO and not solved:
            severity = "input problem" if share >= _NEARLY_ALL else "suspicious"
            text = f"exactly zero in {share:.0%} of the last {_ZERO_WITHIN} records"
            return ZERO, severity, zeros[0], text
        spikes = state.spikes
        if len(spikes) == _SPIKES and state.count - spikes[0][0] < _SPIKES_WITHIN:
            text = ", ".join(f"{times:.0f} times the usual at {step}" for _, step, times in spikes)
            return SPIKES, "failing" if losing else "suspicious", spikes[0][1], text
        fall = self._falls[unit]
        if fall.complete and fall.ratio <= _LEFT and not solved:
            text = f"{fall.ratio:.1%} of that at the start ({fall.typical:.3g} -> {fall.now:.3g})"
            return VANISHING, "suspicious", fall.onset, text
        return "", "suspicious", None, f"its gradient norm is {state.last:.3g}"


def _has_gradients(workflow: Workflow, unit: str) -> bool:
    return unit == EVERYONE or workflow.moves(unit)


def _norm(record: StepRecord, unit: str, workflow: Workflow) -> float | None:
    if unit == EVERYONE:
        return mean_of(record, unit, "grad_norm")
    return gradient_norm(record, workflow.policy_of(unit), unit)


def _reader(workflow: Workflow) -> Reader:
    def read(record: StepRecord, unit: str) -> float | None:
        norm = _norm(record, unit, workflow)
        # A norm of exactly zero has a finding of its own.
        return norm if norm is not None and math.isfinite(norm) and norm > 0 else None

    return read


_CLIP = "Pascanu et al. (2013), On the difficulty of training RNNs, arXiv 1211.5063: clipping"

CARD = Card(
    name=NAME,
    about=(
        "Watches gradient norms for values that are not finite or exactly zero, for norms that "
        "vanish, and for spikes that come again."
    ),
    findings=(
        Finding(
            BROKEN,
            "Gradients of {the} have not been finite since step {onset}",
            "Some gradients are infinite or NaN: those steps are skipped, or destroy the policy.",
            "movement",
            "input problem",
            (
                LOWER_RATE,
                "train in bfloat16 or float32 instead of float16",
                "look for rewards, advantages or log-probabilities that are not finite",
            ),
            (_CLIP,),
        ),
        Finding(
            ZERO,
            "Many gradients of {the} have been exactly zero since step {onset}",
            "Optimizer steps with a gradient of exactly zero change nothing: all advantages were "
            "zero, or the loss does not reach the parameters.",
            "input",
            "suspicious",
            (
                "check the share of groups with equal rewards (TRL: frac_reward_zero_std)",
                "check that the parameters of {role} are trainable and that its rows are not"
                " masked out of the loss",
            ),
            (GRPO,),
        ),
        Finding(
            VANISHING,
            "The gradients of {the} have been vanishing since step {onset}",
            "The gradient norm has fallen to a twentieth of that at the start.",
            "outcome",
            "suspicious",
            (
                "check the share of groups with equal rewards and the spread of the advantages",
                "check that the entropy has not collapsed: a policy that is sure has no gradient",
            ),
            (GRPO,),
        ),
        Finding(
            SPIKES,
            "The gradients of {the} have spiked again and again since step {onset}",
            "Three gradient norms or more within 200 steps are eight times as large as usual.",
            "movement",
            "suspicious",
            (
                "clip the gradient (TRL: max_grad_norm; verl: actor.grad_clip)",
                "read the responses of the steps that spiked: few very long or repetitive ones, or"
                " an extreme reward",
                LOWER_RATE,
            ),
            (_CLIP,),
        ),
    ),
    make=_Gradients,
    reads=("grad_norm", "nonfinite_gradients", "pg_loss"),
    needs=("gradient norms",),
    order=4,
)
