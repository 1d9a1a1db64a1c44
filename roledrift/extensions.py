"""Extensions from other installed distributions, found by their entry points.

A distribution names its parts in its ``pyproject.toml``::

    [project.entry-points."roledrift.detectors"]
    shouting = "my_package.shouting:Shouting"

A part is imported when a part of its kind is first asked for, and never twice. One that cannot be
imported or made is named on the log and wherever parts of its kind are listed; everything else goes
on without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal, TypeVar

Kind = Literal["probes", "detectors", "importers", "overviews"]
"""``probes``: a ``measure.cards.ProbeCard``. ``detectors``: a ``detect.cards.Card``.
``importers``: a ``roledrift.ingest.form.Format``. ``overviews``: a
``roledrift.report.sweep.overviews.Overview``."""

KINDS: tuple[Kind, ...] = ("probes", "detectors", "importers", "overviews")

_LOG = logging.getLogger("roledrift")
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Extension:
    """One entry point.

    Attributes:
        name: Name of the entry point; the part's own name must be the same.
        origin: Distribution and version that bring it.
        part: What was imported; None if that failed.
        fault: Why it cannot be used; empty if it can.
    """

    name: str
    origin: str
    part: Any = None
    fault: str = ""


@cache
def extensions(kind: Kind) -> tuple[Extension, ...]:
    """Return all installed extensions of one kind, by name; the first call imports them."""
    group = f"roledrift.{kind}"
    points, fault = attempt(f"the entry points of {group}", lambda: entry_points(group=group))
    loaded: dict[str, Extension] = {}
    for point in sorted(points or (), key=lambda entry: (entry.name, entry.value)):
        known = loaded.get(point.name)
        if known is None:
            loaded[point.name] = _loaded(group, point)
        else:
            _named(f"{point.value} of {group}", f"{known.origin} brings one of that name already")
    return (*loaded.values(), *([Extension(group, "", None, fault)] if fault else []))


def usable(kind: Kind, *, shipped: Collection[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the extensions of a kind that can be used, and why the others cannot.

    Returns:
        Name to part, and name to fault.
    """
    parts: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for extension in extensions(kind):
        if extension.fault:
            faults[extension.name] = extension.fault
        elif extension.name in shipped:
            # Not among the faults: the name stands for the part that ships, and that one works.
            _named(
                f"{extension.name} of {extension.origin}", "roledrift has one of that name itself"
            )
        else:
            parts[extension.name] = extension.part
    return parts, faults


def attempt(what: str, call: Callable[..., _Made], *arguments: object) -> tuple[_Made | None, str]:
    """Call code of another distribution; log once what it raises.

    Returns:
        The result and nothing, or None and what went wrong.
    """
    try:
        return call(*arguments), ""
    except (Exception, SystemExit) as error:  # somebody else's code must not kill a run
        fault = f"{type(error).__name__}: {error}"
        _named(what, fault)
        return None, fault


def _loaded(group: str, point: EntryPoint) -> Extension:
    dist = point.dist
    origin = "unknown" if dist is None else f"{dist.name} {dist.version}"
    part, error = attempt(f"{point.name} of {group} ({origin})", point.load)
    fault = f"it cannot be imported from {origin}: {error}" if error else ""
    return Extension(point.name, origin, part, fault)


@cache
def _named(what: str, fault: str) -> None:
    _LOG.warning("%s cannot be used (%s); roledrift goes on without it", what, fault)
