"""What a monitor has collected and not yet written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from roledrift.errors import CaptureError
from roledrift.protocols import Probe, Reducer
from roledrift.records import GramRecord, Sample, Stat, StepRecord
from roledrift.spans import Kind, Provenance, SpanTable, describe
from roledrift.sums import Sums, add


@dataclass(slots=True)
class Pending:
    """What has come in since the last step."""

    sums: list[Sums] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    totals: dict[str, float] = field(default_factory=dict)
    logged: dict[str, dict[str, Stat]] = field(default_factory=dict)
    logged_totals: dict[str, float] = field(default_factory=dict)
    solved: str = ""
    gradients: list[GramRecord] = field(default_factory=list)
    present: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    sources: dict[Kind, set[Provenance]] = field(default_factory=dict)
    updates: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    cost_ms: Counter[str] = field(default_factory=Counter)

    def beside(self, measured: dict[str, dict[str, Stat]]) -> dict[str, dict[str, Stat]]:
        """Merge measured statistics with logged ones; measured ones win.

        A mean over spans that were seen is better founded than one that the host logged.
        """
        for group, stats in self.logged.items():
            measured[group] = {**stats, **measured.get(group, {})}
        return measured

    def record(self, step: int, time: str) -> StepRecord:
        """Make the record of ``step``, without the statistics of roles."""
        compared: dict[str, str] = {
            kind: describe(kind, sources) for kind, sources in self.sources.items()
        }
        return StepRecord(
            step=int(step),
            time=time,
            totals={**self.logged_totals, **self.totals},
            gradients=tuple(self.gradients),
            missing=tuple(sorted(self.missing - self.present)),
            faults=dict(sorted(self.faults.items())),
            labels={**compared, **self.labels},
            cost_ms={name: round(float(ms), 3) for name, ms in sorted(self.cost_ms.items())},
            solved=self.solved,
        )


class BasePolicy:
    """Sums over the outputs of the policy before training, until the first step takes them."""

    def __init__(self) -> None:
        self._sums: list[Sums] = []
        self._taken = False

    def measure(self, probes: Iterable[Probe], spans: SpanTable) -> None:
        """Measure ``spans`` with the probes whose columns are there.

        Raises:
            CaptureError: If the first step is over.
        """
        if self._taken:
            raise CaptureError("the first step is over: hand over the base policy before it")
        self._sums += [probe.measure(spans) for probe in probes if probe.needs <= spans.present]

    def take(self, reducer: Reducer | None) -> Sums:
        """The sums over all ranks, which take them together; nothing from the second time on."""
        if self._taken:
            return {}
        self._taken = True
        sums, self._sums = add(self._sums), []
        return sums if reducer is None else reducer.add(sums)
