"""All streams of a run: made on request, judged by one false-alert budget, updated per record."""

from __future__ import annotations

import math

from roledrift.config import Config
from roledrift.detect.evidence.learning_rate import LearningRates
from roledrift.detect.evidence.process import needed
from roledrift.detect.evidence.start import Yardstick, Yardsticks
from roledrift.detect.evidence.streams import Stream, StreamState
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow

BASE = "the policy before training"
RAISED = 1.4
"""Learning rate over that at which the warm-up ended from which on it counts as raised: policy
movement (k3) goes with the square, so this is twice the movement."""

RATE = "learning_rate"
"""Name under which the learning rate at the end of its warm-up is kept among the starts."""


class Board:
    """The streams that the detectors of a run have asked for.

    Args:
        workflow: Roles and policies.
        config: Window of the start, false-alert budget, and when an excursion is over.
        yardsticks: Role to stream to centre and error of the starts of earlier runs.

    Attributes:
        rates: The learning rate of every role's policy.
        needed: Log-evidence that completes a stream of weight 1.
        records: Records seen so far.
    """

    def __init__(
        self,
        workflow: Workflow,
        config: Config,
        yardsticks: Yardsticks | None = None,
    ) -> None:
        self.rates = LearningRates(workflow)
        self.needed = needed(config.false_alerts_per_run, 0)
        self.records = self._measured = 0
        self._roles = workflow.role_names
        self._raised: set[str] = set()
        self._config = config
        self._states: dict[tuple[str, Stream], StreamState] = {}
        self._unseen: list[StreamState] = []
        self._yardsticks = yardsticks or {}

    def watch(self, role: str, stream: Stream) -> StreamState:
        """The state of a stream of ``role``; detectors that ask for the same one share it."""
        key = (role, stream)
        state = self._states.get(key)
        if state is None:
            window, close_after = self._config.baseline.window, self._config.close_after
            state = StreamState(stream, role, window=window, close_after=close_after)
            self._states[key] = state
            self._unseen.append(state)
            earlier = self._yardsticks.get(role, {}).get(stream.name)
            if earlier is not None:
                state.measure_by(Yardstick(*earlier, "earlier runs"))
        return state

    @property
    def streams(self) -> int:
        """How many streams share the budget: those that were measured; others cannot alarm."""
        return self._measured

    def starts(self) -> dict[str, dict[str, float]]:
        """Role to stream to the centre of its start; later runs are held against these."""
        starts: dict[str, dict[str, float]] = {}
        for role in self._roles if self.rates.known else ():
            starts[role] = {RATE: round(math.log(self.rates.unit(role)), 6)}
        for (role, stream), state in self._states.items():
            if state.known and math.isfinite(state.start.center):
                starts.setdefault(role, {})[stream.name] = round(state.start.center, 6)
        return starts

    def above_earlier_rates(self, role: str) -> float:
        """The learning rate of ``role`` over that of earlier runs; 1 within their range."""
        earlier = self._yardsticks.get(role, {}).get(RATE)
        if earlier is None or not self.rates.known:
            return 1.0
        above = math.log(self.rates.unit(role)) - earlier[0]
        return math.exp(above) if above > earlier[1] else 1.0

    def observe(self, record: StepRecord) -> None:
        """Take one record; call it before the detectors."""
        if self.records == 0 and record.base:
            self._measure_by_base(record)
        self.records += 1
        self.rates.observe(record)
        self._expect()
        for state in self._states.values():
            state.observe(record)
        self._split()

    def _split(self) -> None:
        """Split the false-alert budget over the streams that have been measured so far."""
        unseen = [state for state in self._unseen if state.value is None]
        if len(unseen) == len(self._unseen):
            return
        self._unseen = unseen
        seen = [state for state in self._states.values() if state.seen]
        self._measured = len(seen)
        weights = sum(state.of.weight for state in seen)
        self.needed = needed(self._config.false_alerts_per_run, weights)
        for state in self._states.values():
            state.needed = self.needed - math.log(state.of.weight)

    def _expect(self) -> None:
        """A raised learning rate is expected to move its roles, from this record on."""
        if not self.rates.known:
            return
        raised = {role for role in self._roles if self.rates.raised(role) >= RAISED}
        news, self._raised = raised - self._raised, raised
        for state in self._states.values() if news else ():
            if state.of.moves and (state.role in news or state.role == EVERYONE):
                state.process.expect()

    def _measure_by_base(self, record: StepRecord) -> None:
        """Judge the start itself by the policy before training."""
        before = StepRecord(step=record.step, groups=record.base)
        for (role, stream), state in self._states.items():
            value = before.mean(role, stream.name) if stream.base else None
            if value is not None and math.isfinite(value):
                error = max(stream.spread, stream.floor)
                state.measure_by(Yardstick(stream.scale.on(value), error, BASE))
