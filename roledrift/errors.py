"""Every error the library raises on purpose. Each also is the builtin it refines."""

from __future__ import annotations


class RoleDriftError(Exception):
    """Root of all errors raised by roledrift; catch this to catch them all."""


class ConfigError(RoleDriftError, ValueError):
    """The configuration or the workflow description is wrong; the message lists every problem."""


class CaptureError(RoleDriftError, ValueError):
    """A trainer handed over tensors or rows that do not fit together."""


class AttachError(RoleDriftError, RuntimeError):
    """The monitor cannot be attached to this trainer or model."""


class StoreError(RoleDriftError, OSError):
    """A run directory cannot be written or read."""


class SchemaError(RoleDriftError, ValueError):
    """A stored record was written by a newer version, or is not a roledrift record."""
