"""Probes that other distributions bring: made, checked, and kept to statistics of their own."""

from __future__ import annotations

from collections.abc import Mapping

from roledrift.errors import ConfigError
from roledrift.extensions import attempt, extensions, usable
from roledrift.measure.cards import ProbeCard
from roledrift.measure.catalogue import shipped
from roledrift.protocols import Probe
from roledrift.spans import SpanTable
from roledrift.sums import Sums
from roledrift.workflow import Role, Workflow


class InstalledProbe:
    """A probe of somebody else.

    Its statistics are named ``<name>`` or ``<name>.<anything>``: a statistic that shares its name
    with one of roledrift's own would be added to it.

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


def installed_probes(workflow: Workflow) -> tuple[Probe, ...]:
    """All that can be used; the others have been named on the log."""
    parts, _ = usable("probes", shipped=[card.name for card in shipped()])
    made = (
        attempt(f"probe {name}", _make, name, card, workflow)[0] for name, card in parts.items()
    )
    return tuple(probe for probe in made if probe is not None)


class InstalledProbes:
    """All that can be used, for logs whose roles come to light while they are read.

    They are made for the roles that are known, and anew when more come. What one cannot measure is
    named on the log, and left out.
    """

    def __init__(self) -> None:
        self._slots: dict[str, int] = {}
        self._probes: tuple[Probe, ...] = ()

    def measure(self, table: SpanTable, slots: Mapping[str, int], *, texts: bool) -> list[Sums]:
        """Their sums."""
        if not extensions("probes"):
            return []
        if self._slots != slots:
            self._slots = dict(slots)
            # Routing is known at the end only; what is measured does not depend on it.
            roles = tuple(Role(name, count) for name, count in slots.items())
            workflow = Workflow("imported", roles, ("shared",) * len(roles))
            self._probes = installed_probes(workflow)
        wanted = [
            probe
            for probe in self._probes
            if ("text_N" in probe.needs) == texts and probe.needs <= table.present
        ]
        sums = (attempt(f"probe {probe.name}", probe.measure, table)[0] for probe in wanted)
        return [measured for measured in sums if measured is not None]


def _make(name: str, card: object, workflow: Workflow) -> Probe:
    if not isinstance(card, ProbeCard):
        raise ConfigError(
            f"its entry point is {type(card).__name__}, not a roledrift.measure.cards.ProbeCard"
        )
    return InstalledProbe(name, card.make(workflow))
