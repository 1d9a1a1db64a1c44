"""What all verbs share: exit codes, messages, and where they go.

Results go to standard output, everything else to standard error; under ``--json`` there is nothing
but one JSON document on standard output.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roledrift.errors import ConfigError, RoleDriftError, SchemaError
from roledrift.notify.console import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CLEAN, FINDINGS, FAILED, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130

OUTCOMES = {
    CLEAN: "clean",
    FINDINGS: "findings",
    FAILED: "unreadable",
    INCONCLUSIVE: "inconclusive",
}
"""Exit code to the word for it."""

Kind = Literal[
    "usage",
    "not_found",
    "unreadable",
    "schema_too_new",
    "missing_extra",
    "invalid_config",
    "inconclusive",
    "internal",
]

_HINTS: Mapping[Kind, str] = {
    "usage": "roledrift --help",
    "not_found": "roledrift ls DIR lists the runs in DIR",
    "unreadable": "restore what the message names, or leave this path out",
    "schema_too_new": "pip install -U roledrift",
    "invalid_config": "correct the named keys",
    "missing_extra": "install what the message names",
    "inconclusive": "give a path that holds runs, or let the run go on",
    "internal": "set ROLEDRIFT_STRICT=1 for the traceback, and please report it",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be done.

    Attributes:
        message: One line.
        hint: What to do next.
    """

    kind: Kind
    message: str
    hint: str

    def plain(self) -> dict[str, str]:
        """As JSON-ready values."""
        return asdict(self)


def failure(kind: Kind, message: str) -> Failure:
    """A failure with the hint that belongs to its kind."""
    return Failure(kind, printable(message, 1000), _HINTS[kind])


def failure_of(error: Exception, path: Path | str | None = None) -> Failure:
    """The failure that an error means.

    Args:
        error: What was raised.
        path: What was being read, if anything.
    """
    if isinstance(error, SchemaError):
        return failure("schema_too_new", str(error))
    if isinstance(error, ConfigError):
        return failure("invalid_config", str(error))
    if isinstance(error, RoleDriftError | OSError):
        missing = path is not None and "://" not in str(path) and not Path(path).exists()
        return failure("not_found" if missing else "unreadable", str(error))
    return failure("internal", f"{type(error).__name__}: {error}")


def fail(failed: Failure, *, as_json: bool = False) -> int:
    """Say why it could not be done; the exit code for it."""
    if as_json:
        write_json({"error": failed.plain()})
    else:
        tail = f" ({failed.hint})" if failed.kind in ("usage", "internal") else ""
        say(failed.message + tail)
    return FAILED


def say(message: str) -> None:
    """One line of narration on standard error."""
    sys.stderr.write(f"roledrift: {printable(message, 1200)}\n")


def write_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(_strict(document), indent=2, allow_nan=False) + "\n")


def _strict(value: Any) -> Any:
    """``value`` with non-finite numbers as words, as in run directories."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {name: _strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    return value


def worst(codes: Iterable[int]) -> int:
    """The exit code of several: could not > findings > inconclusive > clean."""
    return max(codes, key=(CLEAN, INCONCLUSIVE, FINDINGS, FAILED).index, default=INCONCLUSIVE)


def console(*, errors: bool = False) -> Console:
    """A console that prints text as it is: no markup, no emoji, no guessing of colours.

    Colours only on a terminal and not if ``NO_COLOR`` is set. Into a pipe, lines are not wrapped.
    """
    from rich.console import Console

    terminal = (sys.stderr if errors else sys.stdout).isatty()
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else 1000
    return Console(stderr=errors, markup=False, emoji=False, highlight=False, width=width)


def print_table(table: Table) -> None:
    """A table on standard output, without the blanks that fill up its last column."""
    out = console()
    with out.capture() as captured:
        out.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))
