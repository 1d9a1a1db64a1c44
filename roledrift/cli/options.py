"""Options that verbs share, and the words that options take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

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


def _named(path: Any) -> Any:
    """A path that is not empty: ``""`` would be the present directory, and is a variable unset."""
    for one in path if isinstance(path, list) else [path]:
        if one is not None and not str(one).strip():
            raise typer.BadParameter("the path is empty; is a variable not set?")
    return path


def run_argument(metavar: str, text: str) -> Any:
    """An argument that names a run or a folder of runs."""
    return typer.Argument(metavar=metavar, help=text, callback=_named)


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
