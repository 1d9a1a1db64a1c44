"""What a detector says about itself: one frozen card, from which everything else is derived.

Titles of alerts, advice, the report's method section, the tables of the documentation, the
configuration section and the list of missing inputs all come from cards. A detector of another
distribution exports the same card.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roledrift.config import Config
from roledrift.detect.evidence.board import Board
from roledrift.detect.evidence.course import Course
from roledrift.detect.remedies import Remedy
from roledrift.judgement import Layer, Severity
from roledrift.protocols import Detector
from roledrift.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a detector may find.

    Attributes:
        name: What users see and filter by.
        title: What has happened, as a sentence without its full stop. Filled in: ``who`` ("The
            generator"), ``the`` ("the generator"), ``ratio``, ``value``, ``base``, ``onset``,
            ``toward``.
        about: One sentence about what it means.
        layer: Where it stands between cause and effect.
        severity: The usual one; a verdict may say another.
        advice: What to do, most effective first; ``{role}`` is filled in.
        sources: Papers, issues and measurements that threshold and advice come from.
    """

    name: str
    title: str
    about: str
    layer: Layer
    severity: Severity
    advice: tuple[Remedy | str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class Context:
    """What a detector is made with.

    Attributes:
        workflow: Roles, slots and policies.
        config: The whole configuration.
        settings: The detector's own section: an instance of its card's ``settings``, or a mapping
            for a detector of another distribution.
        board: Where it gets its streams from.
        course: What training has bought so far.
    """

    workflow: Workflow
    config: Config
    settings: Any
    board: Board
    course: Course


@dataclass(frozen=True, slots=True)
class Card:
    """A detector.

    Attributes:
        name: Unique among detectors; the name of its configuration section.
        about: A paragraph for people: what it watches for, and how.
        findings: What it may find.
        make: Makes the detector for one run.
        reads: Statistics that it rests on, first the one that it cannot do without.
        needs: What a host must record for it, in words.
        settings: Frozen dataclass of its settings; None if nothing can be set.
        order: Place among the detectors in tables; causes come first.
        origin: Distribution that brings it; empty for those that ship.
    """

    name: str
    about: str
    findings: tuple[Finding, ...]
    make: Callable[[Context], Detector]
    reads: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    settings: type[Any] | None = None
    order: int = 5
    origin: str = ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Those of all findings, each once."""
        return tuple(
            dict.fromkeys(source for finding in self.findings for source in finding.sources)
        )


@dataclass(frozen=True)
class Catalogue:
    """Findings by name, over some cards."""

    cards: tuple[Card, ...]
    findings: Mapping[str, Finding] = field(init=False)
    detectors: Mapping[str, str] = field(init=False)
    """Finding to the name of its detector."""

    def __post_init__(self) -> None:
        findings = {finding.name: finding for card in self.cards for finding in card.findings}
        owner = {finding.name: card.name for card in self.cards for finding in card.findings}
        object.__setattr__(self, "findings", findings)
        object.__setattr__(self, "detectors", owner)
