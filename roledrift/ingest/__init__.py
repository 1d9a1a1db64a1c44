"""Foreign logs as runs: one file per format, none of which imports the framework that wrote it.

TRL, verl, TensorBoard and plain files are read here. All other formats are entry points of the
group ``roledrift.importers``, those that ship with roledrift (``integrations/roledrift_importers``)
like those of any other distribution.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from roledrift.config import near
from roledrift.errors import ConfigError, StoreError
from roledrift.ingest import (
    metrics,
    table,
    tensorboard_events,
    trl,
    verl,
)
from roledrift.ingest.form import Format
from roledrift.ingest.installed import installed_formats

FORMATS: Mapping[str, Format] = {
    form.name: form
    for form in (
        trl.FORMAT,
        verl.FORMAT,
        tensorboard_events.FORMAT,
        metrics.FORMAT,
        table.FORMAT,
    )
}
"""The formats of the core, by name, the most specific first."""


def remote(text: str) -> Format | None:
    """The format of an address; None for a path."""
    if "://" not in text:
        return None
    served = (form for form in formats().values() if form.scheme)
    return next((form for form in served if text.startswith(form.scheme)), None)


def formats() -> dict[str, Format]:
    """Every format that can be read: installed ones come before those that only keep numbers."""
    # A folder of TRL is told by its whole layout; the others may lie beside what another holds.
    return {trl.FORMAT.name: trl.FORMAT, **installed_formats(shipped=FORMATS), **FORMATS}


def sniff(path: Path) -> tuple[Format, str]:
    """The format of a file or folder and the reason for taking it for that.

    Raises:
        StoreError: If there is nothing at ``path``, or nobody recognises it.
    """
    if not path.exists():
        raise StoreError(f"{path}: there is no such file or folder")
    known = formats()
    recognised = [
        (form, why) for form in known.values() if (why := _reason(form, path)) is not None
    ]
    if recognised:
        form, reason = recognised[0]
        others = ", ".join(f"{other.name} ({why})" for other, why in recognised[1:])
        return form, reason + (f"; also here, and not read: {others}; --as NAME" if others else "")
    if _nothing(path):
        raise StoreError(f"{path}: is empty")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path}: may not be read")
    raise StoreError(
        f"{path}: not recognised as any of {', '.join(known)}; give `roledrift import` the "
        "format (--as) or say what its columns are (--mapping)"
    )


def _reason(form: Format, path: Path) -> str | None:
    try:
        return form.sniff(path)
    except OSError:  # a folder in it that may not be read
        return None


def _nothing(path: Path) -> bool:
    try:
        return path.stat().st_size == 0 if path.is_file() else not any(path.iterdir())
    except OSError:
        return False


def named(name: str) -> tuple[Format, str]:
    """The format that a user names.

    Raises:
        ConfigError: If there is none of that name.
    """
    known = formats()
    if name not in known:
        raise ConfigError(f"no format {name!r}{near(name, list(known))}")
    return known[name], "named with --as"
