"""Which detectors there are: those that ship, and those of other installed distributions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from roledrift.detect import detectors
from roledrift.detect.cards import Card, Catalogue
from roledrift.extensions import extensions


@cache
def shipped() -> tuple[Card, ...]:
    """The cards of the modules in :mod:`roledrift.detect.detectors`, by name."""
    names = sorted(module.name for module in iter_modules(detectors.__path__))
    modules = [import_module(f"{detectors.__name__}.{name}") for name in names]
    cards = [module.CARD for module in modules if hasattr(module, "CARD")]
    return tuple(sorted(cards, key=lambda card: (card.order, card.name)))


def all_cards() -> Catalogue:
    """Every usable card; one of another distribution never replaces one that ships."""
    return _known()[0]


def faults_of() -> Mapping[str, str]:
    """Why installed detectors cannot be used, by the name of their entry point."""
    return _known()[1]


def known_findings() -> Mapping[str, str]:
    """Every finding and the detector that reports it, in the order of the detectors."""
    return all_cards().detectors


@cache
def _known() -> tuple[Catalogue, Mapping[str, str]]:
    cards, faults = list(shipped()), {}
    taken = {card.name for card in cards} | {f.name for card in cards for f in card.findings}
    for extension in extensions("detectors"):
        fault = extension.fault or _fault(extension.name, extension.part, taken)
        if fault:
            faults[extension.name] = fault
        else:
            cards.append(replace(extension.part, origin=extension.origin))
            taken |= {extension.name, *(finding.name for finding in extension.part.findings)}
    return Catalogue(tuple(cards)), faults


def _fault(name: str, part: object, taken: set[str]) -> str:
    if not isinstance(part, Card):
        return f"its entry point is {type(part).__name__}, not a roledrift.detect.cards.Card"
    if part.name != name:
        return f"its card is called {part.name!r} and its entry point {name!r}: use one name"
    clash = sorted(taken & {part.name, *(finding.name for finding in part.findings)})
    return f"{', '.join(clash)}: there is one of that name already" if clash else ""
