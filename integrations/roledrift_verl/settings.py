"""The section ``roledrift`` of a trainer's configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any

from roledrift.errors import ConfigError
from roledrift.monitor.open_monitor import disabled


@dataclass(frozen=True, slots=True)
class Settings:
    """The section ``roledrift`` of verl's configuration.

    Attributes:
        workflow: A preset, or role to slots. Empty: nothing is watched.
        out: Run directory; empty: ``roledrift`` inside ``trainer.default_local_dir``.
        routing: ``shared`` or ``isolated``; verl trains one policy, which is shared.
        roles: Names, output numbers and prompts to roles, for batches that name nobody, as
            ``roledrift import --roles``: ``0=generator:0,~critique=evaluator``.
        config: A TOML file, or nested values; empty: as :func:`roledrift.open_monitor`.
    """

    workflow: str | Mapping[str, int] = ""
    out: str = ""
    routing: str = ""
    roles: str = ""
    config: str | Mapping[str, Any] = field(default_factory=dict)


def settings_of(config: Any) -> Settings | None:
    """What verl's configuration and the environment say; None if nothing is to be watched.

    ``ROLEDRIFT_WORKFLOW``, ``ROLEDRIFT_OUT`` and ``ROLEDRIFT_ROLES`` fill in what the section
    leaves out.

    Args:
        config: verl's configuration, a mapping with ``get``.

    Raises:
        ConfigError: For an unknown key, with the nearest known one.
    """
    section = _plain(config.get("roledrift", None) or {})
    if not isinstance(section, dict):
        raise ConfigError(f"roledrift: needs a section of keys, got {section!r}")
    known = [field.name for field in fields(Settings)]
    for key in section:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {known}"
            raise ConfigError(f"unknown setting roledrift.{key} of the verl plugin; {hint}")
    for name in ("workflow", "out", "roles"):
        given = os.environ.get(f"ROLEDRIFT_{name.upper()}", "")
        if given and not section.get(name):
            section[name] = given
    return Settings(**section) if section.get("workflow") and not disabled() else None


def _plain(value: Any) -> Any:
    """Sections of OmegaConf are mappings, but no dictionaries."""
    if hasattr(value, "items"):
        return {str(key): _plain(inner) for key, inner in value.items()}
    return value
