"""A probe, a detector and an importer that roledrift finds once this package is installed.

The probe measures which share of a role's letters are capitals. The detector reports a role that
has begun to shout. Their cards say everything that charts, alerts, reports and the configuration
need to know about them. The importer reads logs with lines of `step<TAB>role<TAB>text`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from roledrift.detect.cards import Card, Context, Finding
from roledrift.ingest.form import Format, Job
from roledrift.ingest.rows import SpanRow, StepDone
from roledrift.judgement import Verdict
from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.records import StepRecord
from roledrift.spans import SpanTable
from roledrift.sums import EVERYONE, Key, Mean, Sums
from roledrift.workflow import Workflow


class ShoutingProbe:
    """Statistic `shouting`: the share of a role's letters that are capitals."""

    name = "shouting"
    needs = frozenset({"text_N"})

    def __init__(self, workflow: Workflow) -> None:
        self.roles = workflow.role_names

    def measure(self, spans: SpanTable) -> Sums:
        """Letters are counted, not shares averaged: sums of two tables add up to those of both."""
        sums: Sums = {}
        everything = [(EVERYONE, range(len(spans))), *spans.by_group()]
        for group, rows in everything:
            text = "".join((spans.text_N or ())[row] or "" for row in rows)
            letters = sum(letter.isalpha() for letter in text)
            if letters:
                capitals = sum(letter.isupper() for letter in text)
                sums[Key(group, "shouting")] = Mean(letters, capitals)
        return sums


PROBE = ProbeCard(
    name="shouting",
    make=ShoutingProbe,
    statistics=(
        Statistic(
            name="shouting",
            title="Shouting",
            unit="share of letters",
            formula="capitals over letters, of all texts of a role",
            healthy="level",
            supply="text in RoleBatch",
            share=True,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Section `[detectors.shouting]` of the configuration.

    Attributes:
        share: Share of capitals above which a role shouts.
        patience: Steps in a row after which it is an alert.
    """

    share: float = 0.5
    patience: int = 3


class ShoutingDetector:
    """Finds roles whose letters are mostly capitals, several steps in a row."""

    name = "shouting"

    def __init__(self, context: Context) -> None:
        self.settings: Settings = context.settings
        self.loud: Counter[str] = Counter(dict.fromkeys(context.workflow.role_names, 0))

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """One verdict per role; without a number there is none."""
        return [self._judge(role, record) for role in self.loud]

    def _judge(self, role: str, record: StepRecord) -> Verdict:
        value = record.mean(role, "shouting")
        if value is None:
            return Verdict("shouting", role, "no verdict", needs=("texts",), reason="needs texts")
        self.loud[role] = self.loud[role] + 1 if value > self.settings.share else 0
        drifting = self.loud[role] >= self.settings.patience
        return Verdict(
            "shouting",
            role,
            "drift" if drifting else "ok",
            finding="shouting" if drifting else "",
            statistic="shouting",
            value=value,
            threshold=self.settings.share,
            onset=record.step - self.loud[role] + 1 if drifting else None,
            reason=f"{value:.0%} of its letters are capitals",
        )


CARD = Card(
    name="shouting",
    about="Watches whether a role has begun to write in capitals.",
    findings=(
        Finding(
            name="shouting",
            title="{who} has been shouting since step {onset}",
            about="Most letters of a role are capitals.",
            layer="text",
            severity="suspicious",
            advice=("check that no reward pays {role} for capitals",),
        ),
    ),
    make=ShoutingDetector,
    reads=("shouting",),
    needs=("texts",),
    settings=Settings,
)


def sniff(path: Path) -> str | None:
    """The reason for taking `path` for such a log, None if it is not."""
    return "its name ends in .shoutlog" if path.suffix == ".shoutlog" else None


def read(job: Job) -> Iterator[SpanRow | StepDone]:
    """Outputs, step by step; lines of another shape are counted as skipped."""
    job.facts.host = "shouting"
    last = None
    for number, line in enumerate(job.source.read_text(encoding="utf-8").splitlines(), start=1):
        parts = line.split("\t", 2)
        if len(parts) < 3 or not parts[0].isdigit():
            job.ledger.skip("line of another shape", f"line {number}")
            continue
        step, (role, slot) = int(parts[0]), job.roles.resolve(parts[1])
        if last is not None and step != last:
            yield StepDone(last)
        last = step
        yield SpanRow(step, role, slot, tokens=len(parts[2].split()), text=parts[2])
    if last is not None:
        yield StepDone(last)


FORMAT = Format("shoutlog", "lines of step, role and text", sniff, read)
