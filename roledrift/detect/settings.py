"""Sections of detectors in the configuration: checked against their cards at set-up."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from roledrift.config import Config, build, from_mapping, near
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

    Raises:
        ConfigError: With every problem found.
    """
    if not config.detectors and not config.findings and not config.stop_on:
        return config
    if cards is None:
        from roledrift.detect.catalogue import all_cards

        cards = all_cards().cards
    by_name = {card.name: card for card in cards}
    findings = [finding.name for card in cards for finding in card.findings]
    problems: list[str] = []
    for name, section in config.detectors.items():
        card = by_name.get(name)
        if card is None:
            problems.append(f"detectors.{name}: no such detector" + near(name, list(by_name)))
        elif card.settings is not None:
            build(card.settings, section, f"detectors.{name}", problems)
    problems += [
        f"findings: unknown finding {name!r}" + near(name, findings)
        for name in config.findings
        if name not in findings
    ]
    known = [*SEVERITIES, *findings]
    problems += [
        f"stop_on: unknown finding or severity {name!r}" + near(name, known)
        for name in config.stop_on
        if name not in known
    ]
    if problems:
        raise ConfigError(f"{source}: " + "; ".join(problems))
    return config


def settings_of(card: Card, config: Config) -> Any:
    """The detector's settings; what it does not understand, of an older run, is passed over."""
    section = config.detectors.get(card.name, {})
    return dict(section) if card.settings is None else build(card.settings, section, "", [])
