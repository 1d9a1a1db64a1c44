"""Errors of the reference trainer."""

from __future__ import annotations

from roledrift import RoleDriftError


class SettingsError(RoleDriftError, ValueError):
    """A setting of the reference trainer is wrong; the message lists every problem found."""


class AdapterError(RoleDriftError, RuntimeError):
    """What the engine serves is not what is trained."""


class CheckpointError(RoleDriftError, OSError):
    """A checkpoint could not be written; those before it are whole."""
