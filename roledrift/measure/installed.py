"""Probes that other distributions bring: made, checked, and kept to statistics of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection

from roledrift.errors import ConfigError
from roledrift.extensions import attempt, usable
from roledrift.protocols import Probe
from roledrift.spans import SpanTable
from roledrift.sums import Sums
from roledrift.workflow import Workflow


class InstalledProbe:
    """A probe of somebody else.

    Its statistics are named ``<name>`` or ``<name>.<anything>``: a statistic that shares its name
    with one of roledrift's own would be added to it.

    Args:
        name: Name of its entry point.
        probe: What does the work.

    Raises:
        ConfigError: If it has another name, or not the shape of :class:`roledrift.protocols.Probe`.
    """

    def __init__(self, name: str, probe: Probe) -> None:
        if getattr(probe, "name", None) != name:
            raise ConfigError(
                f"the probe calls itself {getattr(probe, 'name', None)!r}, its entry point "
                f"{name!r}: give both one name"
            )
        if not callable(getattr(probe, "measure", None)):
            raise ConfigError(f"{type(probe).__name__} has no method measure(spans)")
        self.name = name
        self.needs = frozenset(probe.needs)
        self._probe = probe

    def measure(self, spans: SpanTable) -> Sums:
        """Its sums.

        Raises:
            ConfigError: If a statistic has a name that is not its own.
        """
        sums = self._probe.measure(spans)
        alien = {key.name for key in sums if key.name.split(".")[0] != self.name}
        if alien:
            raise ConfigError(
                f"probe {self.name!r} measures {sorted(alien)}: name its statistics {self.name!r} "
                f"or '{self.name}.<anything>'"
            )
        return sums


def installed_probes(workflow: Workflow, *, shipped: Collection[str]) -> tuple[Probe, ...]:
    """All that can be used; the others have been named on the log."""
    parts, _ = usable("probes", shipped=shipped)
    made = (
        attempt(f"probe {name}", _make, name, factory, workflow)[0]
        for name, factory in parts.items()
    )
    return tuple(one for one in made if one is not None)


def _make(name: str, factory: Callable[[Workflow], Probe], workflow: Workflow) -> Probe:
    return InstalledProbe(name, factory(workflow))
