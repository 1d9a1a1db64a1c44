"""Which probes there are, and what is known about every statistic."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from roledrift import measure
from roledrift.config import Tier
from roledrift.extensions import extensions
from roledrift.measure.cards import ProbeCard, Statistic
from roledrift.protocols import Probe
from roledrift.workflow import Workflow


@cache
def shipped() -> tuple[ProbeCard, ...]:
    """The cards of the modules in :mod:`roledrift.measure`."""
    names = sorted(module.name for module in iter_modules(measure.__path__))
    modules = [import_module(f"{measure.__name__}.{name}") for name in names]
    return tuple(card for module in modules for card in getattr(module, "CARDS", ()))


def probes_for(tier: Tier, workflow: Workflow) -> tuple[Probe, ...]:
    """The probes of a tier: ``economy`` leaves out those that read text.

    Those that say nothing about the workflow are left out too.
    """
    made = [card.make(workflow) for card in shipped() if card.applies(workflow)]
    return tuple(probe for probe in made if tier != "economy" or "text_N" not in probe.needs)


@cache
def statistics() -> Mapping[str, Statistic]:
    """Every statistic that a card describes, by name, in the order of the page.

    One of another distribution never replaces one that ships.
    """
    brought = [
        extension.part
        for extension in extensions("probes")
        if isinstance(extension.part, ProbeCard)
    ]
    known: dict[str, Statistic] = {}
    for card in (*shipped(), *brought):
        for statistic in card.statistics:
            known.setdefault(statistic.name, statistic)
    ordered = sorted(known.values(), key=lambda statistic: statistic.order)
    return {statistic.name: statistic for statistic in ordered}


def charted() -> tuple[Statistic, ...]:
    """The statistics that have a chart of their own, in the order of the page."""
    return tuple(statistic for statistic in statistics().values() if statistic.chart)
