"""Errors of the reference trainer."""

from __future__ import annotations

from roledrift import RoleDriftError


class SettingsError(RoleDriftError, ValueError):
    """A setting of the reference trainer is wrong; the message lists every problem found."""


class AdapterError(RoleDriftError, RuntimeError):
    """What the engine serves is not what is trained."""


class RolloutError(RoleDriftError, RuntimeError):
    """An engine cannot go on sampling, or a grader does not answer."""


class RankError(RoleDriftError, RuntimeError):
    """Processes of one run have lost each other, or do not hold the same."""


class StorageError(RoleDriftError, OSError):
    """What a run needs to go on later cannot be written."""
