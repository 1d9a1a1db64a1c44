"""Sections of detectors in the configuration: checked against their cards at set-up."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from roledrift.config import Config, from_mapping
from roledrift.detect.cards import Card
from roledrift.errors import ConfigError
from roledrift.judgement import SEVERITIES


def load(path: str | Path) -> Config:
    """The configuration in a TOML file, checked.

    Raises:
        ConfigError: If the file is missing, no TOML, or holds wrong values.
    """
    try:
        body = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path}: cannot be read ({error.strerror}); give an existing file"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    return checked(from_mapping(body, source=str(path)), source=str(path))


def checked(
    config: Config, *, cards: Sequence[Card] | None = None, source: str = "configuration"
) -> Config:
    """``config``, if detectors' sections and names of findings in it are right.

    Args:
        config: What was set.
        cards: Detectors; None: those that ship and those that are installed.
        source: Where it came from, for the message.

    Raises:
        ConfigError: With every problem found.
    """
    if not config.detectors and not config.findings and not config.stop_on:
        return config
    if cards is None:
        from roledrift.detect.catalogue import all_cards

        cards = all_cards().cards
    by_name = {card.name: card for card in cards}
    findings = [one.name for card in cards for one in card.findings]
    problems = []
    for name, section in config.detectors.items():
        card = by_name.get(name)
        if card is None:
            problems.append(f"detectors.{name}: no such detector{_near(name, list(by_name))}")
        else:
            problems += _problems(card, section)
    for name in config.findings:
        if name not in findings:
            problems.append(f"findings: {name!r} is no finding{_near(name, findings)}")
    for name in config.stop_on:
        if name not in findings and name not in SEVERITIES:
            known = [*SEVERITIES, *findings]
            problems.append(f"stop_on: {name!r} is no finding or severity{_near(name, known)}")
    if problems:
        raise ConfigError(f"{source}: " + "; ".join(problems))
    return config


def settings_of(card: Card, config: Config) -> Any:
    """The detector's settings; keys that it does not know, of an older run, are passed over."""
    section = config.detectors.get(card.name, {})
    if card.settings is None:
        return dict(section)
    hints = get_type_hints(card.settings)
    values = {
        key: _converted(hints[key], value)
        for key, value in section.items()
        if key in hints and not _wrong(hints[key], value)
    }
    return card.settings(**values)


def _problems(card: Card, section: Mapping[str, Any]) -> list[str]:
    if card.settings is None:
        return []
    hints = get_type_hints(card.settings)
    known = [one.name for one in fields(card.settings)]
    found = []
    for key, value in section.items():
        where = f"detectors.{card.name}.{key}"
        if key not in hints:
            found.append(f"unknown key {where!r}{_near(key, known)}")
        elif wrong := _wrong(hints[key], value):
            found.append(f"{where}: {wrong}, got {value!r}")
    return found


def _wrong(hint: Any, value: Any) -> str:
    """What is wrong with a value; empty if nothing."""
    if get_origin(hint) is tuple:
        ok = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
        return "" if ok else "needs a list of names"
    if hint is bool:
        return "" if isinstance(value, bool) else "needs true or false"
    if hint in (int, float):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        ok = number and 0 <= value < float("inf") and (hint is float or float(value).is_integer())
        return "" if ok else f"needs a finite {'number' if hint is float else 'whole number'} >= 0"
    if get_args(hint):
        return "" if value in get_args(hint) else f"must be one of {list(get_args(hint))}"
    return "" if isinstance(value, hint) else f"needs a {hint.__name__}"


def _converted(hint: Any, value: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(value)
    return hint(value) if hint in (int, float) else value


def _near(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {sorted(known)}"
