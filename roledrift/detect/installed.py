"""Detectors that other distributions bring: made, checked and kept apart from those that ship."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence

from roledrift.config import Config
from roledrift.errors import ConfigError
from roledrift.extensions import attempt, usable
from roledrift.protocols import Detector
from roledrift.records import StepRecord, Verdict
from roledrift.sums import EVERYONE
from roledrift.workflow import Workflow


class InstalledDetector:
    """A detector of somebody else, whose verdicts are checked before they are believed.

    Args:
        name: Name of its entry point.
        detector: What does the work.
        workflow: Roles that it may judge.

    Raises:
        ConfigError: If it has another name, no ``update``, or cannot be copied: the panel goes back
            to a copy when a run is taken back to a checkpoint.
    """

    def __init__(self, name: str, detector: Detector, workflow: Workflow) -> None:
        if getattr(detector, "name", None) != name:
            raise ConfigError(
                f"the detector calls itself {getattr(detector, 'name', None)!r}, its entry point "
                f"{name!r}: give both one name"
            )
        if not callable(getattr(detector, "update", None)):
            raise ConfigError(f"{type(detector).__name__} has no method update(record)")
        copy.deepcopy(detector)
        self.name = name
        self.reads = frozenset(getattr(detector, "reads", ()))
        self._detector = detector
        self._roles = {*workflow.role_names, EVERYONE}

    def update(self, record: StepRecord) -> Sequence[Verdict]:
        """What it thinks after this step.

        Raises:
            TypeError: If that is anything but verdicts under its own name on roles of the workflow.
        """
        verdicts = tuple(self._detector.update(record))
        for one in verdicts:
            if not isinstance(one, Verdict) or one.detector != self.name:
                raise TypeError(f"update gave {one!r}, no Verdict of detector {self.name!r}")
            if one.role not in self._roles:
                raise TypeError(f"update judged {one.role!r}, which is no role of the workflow")
        return verdicts


def installed_detectors(
    workflow: Workflow, config: Config, *, shipped: Collection[str]
) -> tuple[list[Detector], dict[str, str]]:
    """The enabled ones, and why others that are enabled cannot be used, by name.

    Args:
        workflow: Roles, slots, policies.
        config: A section ``[extensions.<name>]`` with ``enabled = false`` switches one off.
        shipped: Names of roledrift's own detectors.
    """
    parts, faults = usable("detectors", shipped=shipped)
    made: list[Detector] = []
    for name, factory in parts.items():
        if not _enabled(config, name):
            continue
        detector, said = attempt(f"detector {name}", _make, name, factory, workflow, config)
        if detector is not None:
            made.append(detector)
        else:
            faults[name] = said
    return made, {name: said for name, said in faults.items() if _enabled(config, name)}


def _make(
    name: str, factory: Callable[[Workflow, Config], Detector], workflow: Workflow, config: Config
) -> Detector:
    return InstalledDetector(name, factory(workflow, config), workflow)


def _enabled(config: Config, name: str) -> bool:
    return bool(config.extensions.get(name, {}).get("enabled", True))
