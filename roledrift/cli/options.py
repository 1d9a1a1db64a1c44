"""Options that verbs share, the words that options take, and many options as one value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


class Style(StrEnum):
    """How the outcome of a check is written."""

    text = "text"
    json = "json"
    markdown = "markdown"
    github = "github"
    junit = "junit"


class Order(StrEnum):
    """In which order runs are listed."""

    severity = "severity"
    path = "path"
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


def _severity(word: str) -> str:
    """A word of ``--fail-on``, or what is wrong with it."""
    from roledrift.cli.findings import COUNTS, RENAMED

    if word in COUNTS:
        return word
    words = ", ".join(COUNTS)
    if word in RENAMED:
        raise typer.BadParameter(
            f"{word!r} was a level; findings have severities now. Use {RENAMED[word]!r} "
            f"(one of {words})."
        )
    raise typer.BadParameter(f"{word!r} is not one of {words}.")


FailOn = Annotated[
    str,
    typer.Option(
        "--fail-on",
        metavar="[failing|input|suspicious|never]",
        callback=_severity,
        help="Least severity that exits with 1: failing, input (problem), suspicious, or never.",
    ),
]


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


def with_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb its options as the argument ``how``, and typer a parameter for each.

    Args:
        kind: A dataclass; its fields are annotated as typer wants parameters to be, and all have a
            default.
    """

    def spread(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        hints = get_type_hints(kind, include_extras=True)
        options = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=one.default,
                annotation=hints[one.name],
            )
            for one in fields(kind)
        ]

        @wraps(verb)
        def told(**given: Any) -> None:
            verb(how=kind(**{one.name: given.pop(one.name) for one in fields(kind)}), **given)

        whole = [*(one for one in own if one.name != "how"), *options]
        told.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]
        told.__annotations__ = {one.name: one.annotation for one in whole}
        return told

    return spread
