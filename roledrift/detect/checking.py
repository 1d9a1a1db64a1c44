"""A detector whose verdicts are checked before they are believed."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from roledrift.detect.cards import Card
from roledrift.errors import ConfigError
from roledrift.judgement import Verdict
from roledrift.protocols import Detector
from roledrift.records import StepRecord
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow


class CheckedDetector:
    """Runs a detector and refuses what is no verdict of it.

    Raises:
        ConfigError: If it has no ``update``, or cannot be copied: the suite goes back to a copy
            when a run is taken back to a checkpoint.
    """

    def __init__(self, card: Card, detector: Detector, workflow: Workflow) -> None:
        if not callable(getattr(detector, "update", None)):
            raise ConfigError(f"detector {card.name!r}: {type(detector).__name__} has no update()")
        if card.origin:
            copy.deepcopy(detector)
        self.name = card.name
        self._findings = frozenset(finding.name for finding in card.findings)
        self._detector = detector
        self._roles = frozenset({*workflow.role_names, EVERYONE})

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """What the detector thinks after this step.

        Raises:
            TypeError: If that is anything but verdicts under its name, on roles of the workflow,
                with findings of its card.
        """
        verdicts = tuple(
            [verdict for verdict in self._detector.update(record) if verdict is not None]
        )
        for verdict in verdicts:
            if not isinstance(verdict, Verdict) or verdict.detector != self.name:
                raise TypeError(
                    f"update returned {verdict!r}, no Verdict of detector {self.name!r}"
                )
            if verdict.role not in self._roles:
                raise TypeError(
                    f"update judged {verdict.role!r}, which is not a role of the workflow"
                )
            if verdict.state == "drift" and verdict.finding not in self._findings:
                known = sorted(self._findings)
                raise TypeError(
                    f"update found {verdict.finding!r}; the card's findings are {known}"
                )
        return verdicts
