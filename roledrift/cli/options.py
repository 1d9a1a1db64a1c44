"""Options that several commands share, and types for what options take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from roledrift.config import CostsConfig


class Style(StrEnum):
    """How the outcome of a check is written."""

    text = "text"
    markdown = "markdown"
    github = "github"
    junit = "junit"


def _named(path: Any) -> Any:
    """A path that is not empty: ``""`` would be the present directory, and is a variable unset."""
    for given in path if isinstance(path, list) else [path]:
        if given is not None and not str(given).strip():
            raise typer.BadParameter("the path is empty; is a variable not set?")
    return path


def _severity(word: str) -> str:
    """A word of ``--fail-on``, or what is wrong with it."""
    from roledrift.cli.findings import COUNTS

    if word in COUNTS:
        return word
    raise typer.BadParameter(f"{word!r} is not one of {', '.join(COUNTS)}.")


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
    """Make an argument that names a run or a folder of runs."""
    return typer.Argument(metavar=metavar, help=text, callback=_named)


ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        envvar="ROLEDRIFT_CONFIG",
        metavar="FILE",
        help="Judge by this roledrift.toml instead of the run's own configuration.",
    ),
]
GpuHourCost = Annotated[
    float,
    typer.Option(
        "--gpu-hour-cost",
        envvar="ROLEDRIFT_GPU_HOUR_COST",
        metavar="MONEY",
        min=0.0,
        help="Price of a GPU hour, to estimate what the run cost.",
    ),
]
Devices = Annotated[
    int,
    typer.Option(
        "--devices",
        envvar="ROLEDRIFT_DEVICES",
        metavar="N",
        min=0,
        help="Number of GPUs of the run, if it was not recorded.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


class _Costing:
    """What the estimate of costs cannot know by itself."""

    devices: int
    gpu_hour_cost: float

    @property
    def costs(self) -> CostsConfig:
        """Both, over what a configuration says."""
        return CostsConfig(self.devices, self.gpu_hour_cost)


@dataclass(frozen=True)
class Reported(_Costing):
    """Options of ``roledrift report``."""

    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Directory for the report.")
    ] = Path("report")
    formats: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="LIST",
            help="Formats, separated by commas: html,md,json,csv,tex,png,status.",
        ),
    ] = "html,md,json"
    config: ConfigFile = None
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Leave out all texts written by models.")
    ] = False
    redact: Annotated[
        str,
        typer.Option("--redact", metavar="REGEX", help="Replace every match of REGEX in texts."),
    ] = ""
    jobs: Annotated[
        int, typer.Option("--jobs", min=0, help="Number of processes; 0 is one per CPU.")
    ] = 0
    by: Annotated[
        str,
        typer.Option("--by", metavar="KEYS", help="Group the runs by policy, scale or a setting."),
    ] = ""
    paper: Annotated[
        bool, typer.Option("--paper", help="With the tables of arXiv 2605.24202 for any runs.")
    ] = False
    look: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False
    gpu_hour_cost: GpuHourCost = 0.0
    devices: Devices = 0
    as_json: Json = False


@dataclass(frozen=True)
class Judged(_Costing):
    """Options of ``roledrift check``."""

    config: ConfigFile = None
    fail_on: FailOn = "input"
    findings: Annotated[
        list[str] | None,
        typer.Option("--finding", metavar="NAME", help="Judge only this finding; may be repeated."),
    ] = None
    style: Annotated[Style, typer.Option("--format", help="Output format.")] = Style.text
    everything: Annotated[
        bool,
        typer.Option(
            "-v",
            "--all",
            help="Print every verdict, also those that do not apply, and its sources.",
        ),
    ] = False
    gpu_hour_cost: GpuHourCost = 0.0
    devices: Devices = 0
    as_json: Json = False


@dataclass(frozen=True, slots=True)
class Importing:
    """Options of ``roledrift import``."""

    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="RUN", help="Run directory, or folder for several."),
    ] = None
    form: Annotated[
        str,
        typer.Option(
            "--as", metavar="FORMAT", help="Format of the source, instead of guessing it."
        ),
    ] = ""
    roles: Annotated[
        str,
        typer.Option("--roles", metavar="MAP", help="Map names to roles: 0=generator:0,..."),
    ] = ""
    mapping: Annotated[
        Path | None,
        typer.Option(
            "--mapping",
            metavar="FILE",
            help="TOML file that says what each column of a table holds.",
        ),
    ] = None
    routing: Annotated[
        str,
        typer.Option(
            "--routing", metavar="WORD", help="Policies of the roles: shared or isolated."
        ),
    ] = ""
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer",
            metavar="NAME",
            help="Tokenizer to count tokens with where the log has no counts.",
        ),
    ] = ""
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read everything but write nothing.")
    ] = False
    as_json: Json = False


def with_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Pass a command its options as the argument ``how``, and give typer a parameter for each."""

    def spread(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        hints = get_type_hints(kind, include_extras=True)
        options = [
            inspect.Parameter(
                option.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=option.default,
                annotation=hints[option.name],
            )
            for option in fields(kind)
        ]

        @wraps(verb)
        def spread_out(**given: Any) -> None:
            verb(
                how=kind(**{option.name: given.pop(option.name) for option in fields(kind)}),
                **given,
            )

        parameters = [*(option for option in own if option.name != "how"), *options]
        spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        spread_out.__annotations__ = {option.name: option.annotation for option in parameters}
        return spread_out

    return spread
