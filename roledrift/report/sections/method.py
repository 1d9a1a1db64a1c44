"""Section "Method": what the numbers mean, how they were judged, and how to make the page again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from roledrift.config import Config
from roledrift.detect.cards import Card
from roledrift.detect.catalogue import all_cards
from roledrift.detect.settings import settings_of
from roledrift.measure.catalogue import statistics
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Block, Cell, Prose, Section, Table
from roledrift.report.numbers import number
from roledrift.report.sections.names import role_name, statistic_name
from roledrift.sums import EVERYONE

_DIFFERENCE = (
    "d",
    "log-probability of a token under the policy in question minus the one compared with",
)
_WORDS = (
    (
        "gradient share",
        "squared norm of a role's gradient over the sum of squared norms within one policy",
    ),
    (
        "coherence kappa",
        "norm of the sum of slot gradients over the root of the sum of their "
        "squared norms: 1 for orthogonal, √N for identical gradients",
    ),
    ("start, baseline", "the first records of the run, or those of its reference run"),
    ("onset", "first step of the excursion that led to an alert; the alert itself comes later"),
)


def build(run: JudgedRun, command: str) -> Section:
    """Build the section."""
    blocks: list[Block] = [
        Prose(command, title="Make this page again"),
        _detectors(run),
        _words(run),
        _settings(run),
        _versions(run),
    ]
    return Section("method", "Method", tuple(blocks), "detectors, words, configuration")


def _words(run: JudgedRun) -> Table:
    """Formulas of what was measured, from the cards of the statistics, and further words."""
    measured = {name for role in (*run.roles, EVERYONE) for name in run.measured(role)}
    known = [statistic for name, statistic in statistics().items() if name in measured]
    formulas = [(statistic.title, statistic.formula) for statistic in known]
    difference = [_DIFFERENCE] if any(" d is " in formula for _, formula in formulas) else []
    rows = (*difference, *formulas, *_WORDS)
    return Table(
        ("word", "meaning"),
        tuple((Cell(word), Cell(meaning)) for word, meaning in rows),
        title="Words and formulas",
        collapsed=True,
    )


def _detectors(run: JudgedRun) -> Table:
    limits: dict[str, list[str]] = {}
    for verdict in run.verdicts:
        if verdict.threshold is not None:
            limit = f"{statistic_name(verdict.statistic)} {number(verdict.threshold)}"
            limits.setdefault(verdict.detector, []).append(f"{role_name(verdict.role)}: {limit}")
    cards = {card.name: card for card in all_cards().cards}
    names = tuple(dict.fromkeys(verdict.detector for verdict in run.verdicts))
    rows = tuple(_detector(name, cards.get(name), limits.get(name, ())) for name in names)
    return Table(
        ("detector", "what it does", "findings", "reads", "rests on", "limits"),
        rows,
        title="Detectors",
    )


def _detector(name: str, card: Card | None, limits: Sequence[str]) -> tuple[Cell, ...]:
    if card is None:
        words = ("It is not installed where this page was made.", "", "", "")
    else:
        findings = ", ".join(finding.name for finding in card.findings)
        reads = ", ".join(map(statistic_name, card.reads))
        words = (card.about, findings, reads, "; ".join(card.sources))
    return (Cell(name), *(Cell(word or "–") for word in (*words, "; ".join(limits))))


def _settings(run: JudgedRun) -> Table:
    defaults = dict(_flat(Config()))
    rows = tuple(
        (
            Cell(key),
            Cell(_shown(value)),
            Cell(
                "default" if defaults.get(key) == value else f"set; default {_shown(defaults[key])}"
            ),
        )
        for key, value in _flat(run.config)
    )
    return Table(("setting", "value", "where from"), rows, title="Configuration", collapsed=True)


def _flat(config: Config) -> Iterator[tuple[str, Any]]:
    """Every setting under its full name, those of detectors as their cards declare them."""
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name == "detectors":
            for card in all_cards().cards:
                settings = settings_of(card, config)
                if is_dataclass(settings):
                    for name, inner in _fields(settings):
                        yield f"detectors.{card.name}.{name}", inner
        elif is_dataclass(value):
            for name, inner in _fields(value):
                yield f"{field.name}.{name}", inner
        else:
            yield field.name, value


def _fields(section: Any) -> Iterator[tuple[str, Any]]:
    for field in fields(section):
        yield field.name, getattr(section, field.name)


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def _versions(run: JudgedRun) -> Table:
    header = run.header
    rows = [(Cell(name), Cell(version)) for name, version in sorted(header.versions.items())]
    known = (("host", header.host), ("created", header.created), ("run", header.run))
    rows += [(Cell(name), Cell(value)) for name, value in known if value]
    return Table(("what", "version"), tuple(rows), title="Versions", collapsed=True)
