"""One run, loaded and judged, with the questions that all sections ask of it."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from roledrift.config import Config, CostsConfig, watched_with
from roledrift.costs import with_given
from roledrift.detect.conclusion import Conclusion, conclude
from roledrift.detect.suite import Replay, replay_run
from roledrift.errors import RoleDriftError
from roledrift.judgement import SEVERITIES, Alert, Incident, Verdict
from roledrift.records import LENGTH_UNIT, RunHeader, Sample, StepRecord
from roledrift.report.statuses import Status, holds
from roledrift.store.reader import open_run, reference_steps
from roledrift.sums import EVERYONE

VALIDATION = "val_accuracy"
BASE = "base_accuracy"
REWARD = "reward"
MOST_TEXTS = 20_000
"""Texts of one run that are read; of a run with more, an even share of every step."""

HIDDEN = "[redacted]"


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a report may show to readers who must not see everything.

    Attributes:
        texts: False leaves every text of a model and every prompt out; numbers on them stay.
        redact: What it matches is replaced, in texts and everywhere else.
    """

    texts: bool = True
    redact: re.Pattern[str] | None = None

    def hide(self, text: str) -> str:
        """Replace everything in ``text`` that must not be seen."""
        return text if self.redact is None else self.redact.sub(HIDDEN, text)

    def sample(self, sample: Sample) -> Sample:
        """Replace what must not be seen in a kept text."""
        if self.redact is None:
            return sample
        return replace(
            sample,
            text=self.hide(sample.text),
            prompt_text=self.hide(sample.prompt_text),
            prompt=self.hide(sample.prompt),
            episode=self.hide(sample.episode),
        )

    def alert(self, alert: Alert) -> Alert:
        """Remove from an alert every text of a model that must not be seen."""
        if not self.texts:
            return replace(alert, pairs=())
        pairs = (
            replace(
                pair,
                prompt=self.hide(pair.prompt),
                before=self.hide(pair.before),
                after=self.hide(pair.after),
            )
            for pair in alert.pairs
        )
        return alert if self.redact is None else replace(alert, pairs=tuple(pairs))


@dataclass(frozen=True)
class ReportedFinding:
    """One alert from its opening to its closing.

    Attributes:
        alert: The transition with the worst severity; the first of these.
        raised: Step at which it opened.
        escalated: Step at which it got worse, None if it did not after opening.
        closed: Step at which it closed, None while open.
        incident: The incident that it belongs to, if one is known.
    """

    alert: Alert
    raised: int
    escalated: int | None
    closed: int | None
    incident: Incident | None = None

    @property
    def state(self) -> Status:
        """The severity."""
        return self.alert.graded


def findings(
    alerts: Iterable[Alert], incidents: Sequence[Incident] = ()
) -> tuple[ReportedFinding, ...]:
    """Group transitions by alert and sort them: by incident with its cause first, then by onset."""
    grouped: dict[str, list[Alert]] = {}
    for alert in alerts:
        grouped.setdefault(alert.id, []).append(alert)
    keyed = []
    for group in grouped.values():
        raised = [alert for alert in group if alert.state != "closed"] or group
        worst = min(raised, key=lambda alert: SEVERITIES.index(alert.graded))
        escalated = next((alert.step for alert in group if alert.state == "escalated"), None)
        closed = group[-1].step if group[-1].state == "closed" else None
        at = next(
            (n for n, incident in enumerate(incidents) if holds(incident, worst)), len(incidents)
        )
        incident = incidents[at] if at < len(incidents) else None
        later = incident is None or incident.alerts[0] != worst.id
        severity = SEVERITIES.index(worst.graded) if incident is None else 0
        key = (at, later, severity, worst.onset, worst.role)
        keyed.append((key, ReportedFinding(worst, group[0].step, escalated, closed, incident)))
    return tuple(finding for _, finding in sorted(keyed, key=lambda pair: pair[0]))


@dataclass(frozen=True)
class JudgedRun:
    """One run, loaded and judged.

    Attributes:
        key: Anchor of the run in the page.
        config_note: Why the defaults were used instead of the run's configuration; often empty.
        state: ``finished``, ``open`` or ``empty``.
        samples: Texts that may be shown; ``counted``: texts that numbers are computed from.
        texts: How many texts the run directory holds.
    """

    key: str
    path: Path
    header: RunHeader
    records: tuple[StepRecord, ...]
    samples: tuple[Sample, ...]
    counted: tuple[Sample, ...]
    texts: int
    live_alerts: tuple[Alert, ...]
    state: str
    seams: tuple[int, ...]
    problems: tuple[str, ...]
    config: Config
    config_note: str
    replay: Replay
    _groups: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict, init=False)

    @property
    def roles(self) -> tuple[str, ...]:
        """Role names in registry order."""
        return self.header.workflow.role_names

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.header.run or self.path.name

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Latest verdict per detector and role."""
        return self.replay.verdicts

    @cached_property
    def findings(self) -> tuple[ReportedFinding, ...]:
        """Alerts of the replay: first incident first, and its cause before the rest."""
        return findings(self.replay.alerts, self.replay.incidents)

    @cached_property
    def conclusion(self) -> Conclusion:
        """Outcome and headline of the run, by the rule that every output shares."""
        return conclude(self.verdicts, self.replay.incidents, len(self.records))

    @property
    def span(self) -> tuple[int, int]:
        """First and last step; ``(0, 1)`` without records."""
        if not self.records:
            return (0, 1)
        first, last = self.records[0].step, self.records[-1].step
        return (first, max(last, first + 1))

    @property
    def length_unit(self) -> str:
        """Unit of lengths: ``tokens``, or ``characters`` if tokens were not counted."""
        return next((record.labels.get(LENGTH_UNIT, "tokens") for record in self.records), "tokens")

    @property
    def baseline(self) -> tuple[int, int] | None:
        """First and last step of the baseline window; None if the run is too short for it."""
        window = self.config.baseline.window
        inside = self.records[:window]
        return (inside[0].step, inside[-1].step) if inside and len(inside) == window else None

    def curve(self, group: str, name: str) -> dict[int, float]:
        """One statistic of a role or slot, as step to value; steps without it are left out."""
        return self._means(group).get(name, {})

    def measured(self, group: str) -> frozenset[str]:
        """Names of the statistics of a role or slot."""
        return frozenset(name for name, curve in self._means(group).items() if curve)

    def _means(self, group: str) -> dict[str, dict[int, float]]:
        """Curves of the means: a report draws nearly all, so they are taken in one go."""
        if group not in self._groups:
            curves: defaultdict[str, dict[int, float]] = defaultdict(dict)
            for record in self.records:
                for name in record.groups.get(group, ()):
                    counted = record.counted(group, name)
                    if counted is not None and counted[0]:
                        curves[name][record.step] = counted[1]
            self._groups[group] = dict(curves)
        return self._groups[group]

    def total(self, name: str) -> dict[int, float]:
        """One number of the whole step, as step to value."""
        return {
            record.step: record.totals[name] for record in self.records if name in record.totals
        }

    @cached_property
    def reward(self) -> dict[int, float]:
        """Reward of the whole step: as the host logged it, else the mean over spans."""
        return self.total(REWARD) or self.curve(EVERYONE, REWARD)

    @cached_property
    def validation(self) -> dict[int, float]:
        """Validation accuracy at the steps where the host gave it; step 0 is before training."""
        base = self.total(BASE)
        start = {0: base[min(base)]} if base else {}
        return {**start, **self.total(VALIDATION)}

    def since(self, finding: ReportedFinding) -> tuple[int, int]:
        """First and last step of ``finding``: from its onset until it closed or the run ended."""
        last = self.span[1] if finding.closed is None else finding.closed
        return (finding.alert.onset, last)


def load(
    path: Path,
    key: str,
    config: Config | None = None,
    sharing: Sharing | None = None,
    costs: CostsConfig | None = None,
) -> JudgedRun:
    """Read and judge one run.

    Args:
        path: Its directory.
        key: Anchor in the page.
        config: Judge with this configuration instead of the run's own.
        sharing: What may be shown; None is everything.
        costs: Number of GPUs and price of a GPU hour; these override the configuration.

    Raises:
        StoreError: If there is no run.
        SchemaError: If it was written by a newer version.
    """
    run = open_run(path)
    note = ""
    if config is None:
        config, note = watched_with(run.header.config)
    config = replace(config, costs=with_given(config.costs, costs))
    sharing = sharing or Sharing()
    records = tuple(run.steps())
    reference: list[StepRecord] = []
    try:
        reference = reference_steps(config.baseline.reference, run.header.workflow)
    except RoleDriftError as error:
        note = f"judged by its own start: {error}"
    texts = run.sample_count
    if texts > MOST_TEXTS:
        steps = run.sample_steps
        ends = (steps[0], steps[len(steps) // 2], steps[-1])
        read = run.samples(MOST_TEXTS, complete=ends)
    else:
        read = run.samples()
    counted = tuple(read) if sharing.redact is None else tuple(map(sharing.sample, read))
    return JudgedRun(
        key=key,
        path=path,
        header=run.header,
        records=records,
        samples=counted if sharing.texts else (),
        counted=counted,
        texts=texts,
        live_alerts=tuple(map(sharing.alert, run.alerts())),
        state=run.state,
        seams=tuple(run.seams),
        problems=tuple(run.problems),
        config=config,
        config_note=note,
        replay=replay_run(run.header, records, config, reference=reference),
    )


def thinned(curve: dict[int, float], limit: int = 600) -> dict[int, float]:
    """Thin a curve to at most ``limit`` points, keeping each bin's smallest and largest value.

    A bin keeps a non-finite value instead, if it has one: a gap is signal too.
    """
    steps = sorted(curve)
    if len(steps) <= limit:
        return curve.copy() if steps == list(curve) else {step: curve[step] for step in steps}
    bins = limit // 2
    kept = {steps[0], steps[-1]}
    for index in range(bins):
        inside = steps[index * len(steps) // bins : (index + 1) * len(steps) // bins]
        gaps = [step for step in inside if not math.isfinite(curve[step])]
        kept.update(gaps[:1])
        if len(gaps) < len(inside):
            finite = [step for step in inside if math.isfinite(curve[step])]
            kept.add(min(finite, key=lambda step: curve[step]))
            if not gaps:
                kept.add(max(finite, key=lambda step: curve[step]))
    kept_steps = sorted(kept)
    if len(kept_steps) > limit:
        # The two ends may have come on top; inner points give way.
        kept_steps = [kept_steps[0], *kept_steps[1:-1][: limit - 2], kept_steps[-1]]
    return {step: curve[step] for step in kept_steps}
