"""Options that verbs share, and the words that options take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Style(StrEnum):
    """How the outcome of a check is written."""

    text = "text"
    json = "json"
    markdown = "markdown"
    github = "github"
    junit = "junit"


class FailOn(StrEnum):
    """From which level on a finding counts."""

    warn = "warn"
    error = "error"


class Order(StrEnum):
    """In which order runs are listed."""

    path = "path"
    level = "level"
    steps = "steps"


class Pairing(StrEnum):
    """What of two runs is paired by what."""

    both = "both"
    step = "step"
    prompt = "prompt"


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="ROLEDRIFT_CONFIG",
        metavar="FILE",
        help="Judge by this roledrift.toml; else by what the run was watched with.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
