"""Formats that other distributions bring: checked, and read without believing them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from roledrift.errors import ConfigError, RoleDriftError, StoreError
from roledrift.extensions import attempt, usable
from roledrift.ingest.form import Claim, Format, Job, Source
from roledrift.ingest.rows import Event, Events


def installed_formats(*, shipped: Collection[str]) -> dict[str, Format]:
    """All that can be used, by name; the others have been named on the log."""
    parts, _ = usable("importers", shipped=shipped)
    made = {
        name: attempt(f"importer {name}", _checked, name, part)[0] for name, part in parts.items()
    }
    return {name: form for name, form in made.items() if form is not None}


def _checked(name: str, part: object) -> Format:
    if not isinstance(part, Format) or part.name != name:
        raise ConfigError(
            f"the entry point {name!r} gives {part!r}, and should give a "
            f"roledrift.ingest.form.Format of that name"
        )

    def sniff(path: Path) -> str | None:
        reason, _ = attempt(f"importer {name}", part.sniff, path)
        return reason

    def read(job: Job) -> Events:
        events = iter(part.read(job))
        while (event := _next(name, job, events)) is not None:
            yield event

    def claim(form: Format, folder: Path, below: list[Path]) -> Claim:
        assert part.claim is not None
        return attempt(f"importer {name}", part.claim, form, folder, below)[0] or ([], below)

    def settle(form: Format, root: Path, sources: list[Source]) -> list[Source]:
        assert part.settle is not None
        return attempt(f"importer {name}", part.settle, form, root, sources)[0] or sources

    return replace(
        part,
        sniff=sniff,
        read=read,
        claim=None if part.claim is None else claim,
        settle=None if part.settle is None else settle,
    )


def _next(name: str, job: Job, events: Iterator[Event]) -> Event | None:
    def step() -> Event | RoleDriftError | None:
        try:
            return next(events, None)
        except RoleDriftError as error:  # said on purpose, to the user
            return error

    event, fault = attempt(f"importer {name}", step)
    if isinstance(event, RoleDriftError):
        raise event
    if fault:
        raise StoreError(f"{job.source}: the importer {name!r} failed ({fault})")
    return event
