"""Every error the library raises on purpose. Each also is the builtin it refines."""

from __future__ import annotations

import os
import traceback


class RoleDriftError(Exception):
    """Root of all errors raised by roledrift; catch this to catch them all.

    A notebook shows the sentence alone. ``ROLEDRIFT_STRICT=1`` brings the traceback back.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows."""
        if os.environ.get("ROLEDRIFT_STRICT", "") not in ("", "0"):
            return traceback.format_exception(self)
        return [f"{type(self).__name__}: {self}"]


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
