"""What all commands share: exit codes, messages and output streams.

Results go to standard output, everything else to standard error; under ``--json`` there is nothing
but one JSON document on standard output.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roledrift.errors import ConfigError, RoleDriftError, SchemaError
from roledrift.notify.console import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_SENTENCE = 44
"""Columns that a sentence needs to be read with ease."""

CLEAN, FINDINGS, FAILED, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 130

COLOURS: Mapping[str, str] = {
    "failing": "bold red",
    "input problem": "bold magenta",
    "suspicious": "yellow",
    "watch": "cyan",
    "clean": "green",
    "ok": "green",
    "unreadable": "red",
}
"""Word for a state to its colour; any other has none."""

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

TWINS = {
    "→": "->",
    "…": "...",
    "×": "x",
    "²": "2",
    "χ": "chi",
    "·": ".",
    "–": "-",
    "−": "-",
    "≥": ">=",
    "≤": "<=",
    "±": "+-",
}
"""What is written where the output cannot hold a sign; any other becomes a question mark."""

_HINTS: Mapping[Kind, str] = {
    "usage": "roledrift --help",
    "not_found": "roledrift ls DIR lists the runs in DIR",
    "unreadable": "restore what the message names, or leave this path out",
    "schema_too_new": "install a newer roledrift",
    "invalid_config": "correct the named keys",
    "missing_extra": "install what the message names",
    "inconclusive": "give a path that holds runs, or let the run go on",
    "internal": "set ROLEDRIFT_STRICT=1 for the traceback, and please report it",
}


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something could not be done."""

    kind: Kind
    message: str
    hint: str

    def plain(self) -> dict[str, str]:
        """As JSON-ready values."""
        return asdict(self)


def ready_streams() -> None:
    """Make sure that writing to standard output and error cannot fail.

    A closed one (``>&-``) swallows what it is given, one that is not UTF-8 gets :data:`TWINS`: the
    exit code is the verdict, and the verdict does not depend on where the words go.
    """
    codecs.register_error("roledrift", _twin)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="roledrift")


def _twin(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(TWINS.get(sign, "?") for sign in signs), error.end


def forget_stdout() -> None:
    """Discard standard output: Python flushes it at exit, and would report the error again."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):  # there is none, or it is no file
        return


def strict() -> bool:
    """True if ``ROLEDRIFT_STRICT`` asks for tracebacks."""
    return os.environ.get("ROLEDRIFT_STRICT", "") not in ("", "0")


def failure(kind: Kind, message: str, hint: str = "") -> Failure:
    """Make a failure; by default it has the hint that belongs to its kind."""
    return Failure(kind, printable(message, 1000), hint or _HINTS[kind])


def failure_of(error: Exception, path: Path | str | None = None) -> Failure:
    """Translate an error into a failure."""
    if isinstance(error, SchemaError):
        return failure("schema_too_new", str(error))
    if isinstance(error, ConfigError):
        return failure("invalid_config", str(error))
    if isinstance(error, ImportError) or isinstance(error.__cause__, ImportError):
        return failure("missing_extra", str(error))
    if isinstance(error, RoleDriftError | OSError):
        missing = path is not None and "://" not in str(path) and not Path(path).exists()
        return failure("not_found" if missing else "unreadable", str(error))
    return failure("internal", f"{type(error).__name__}: {error}")


def fail(failed: Failure, *, as_json: bool = False, code: int = FAILED) -> int:
    """Print a failure and return its exit code."""
    if as_json:
        write_json({"error": failed.plain()})
    else:
        tail = f" ({failed.hint})" if failed.kind in ("usage", "internal") else ""
        say(failed.message + tail)
    return code


def no_run(path: str, *, as_json: bool = False) -> int:
    """Print that there is no run at this place, and return the exit code."""
    message = f"{path or '.'}: no run found here or below"
    return fail(failure("inconclusive", message), as_json=as_json, code=INCONCLUSIVE)


def say(message: str) -> None:
    """Print one line on standard error."""
    sys.stderr.write(f"roledrift: {printable(message, 1200)}\n")


def write_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output."""
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


def role(name: str) -> str:
    """Name a role; ``*`` is all roles."""
    return "all roles" if name == "*" else name


def worst(codes: Iterable[int]) -> int:
    """Return the worst of several exit codes: 2 (failed), 1 (findings), 3 (no verdict), 0."""
    return max(codes, key=(CLEAN, INCONCLUSIVE, FINDINGS, FAILED).index, default=INCONCLUSIVE)


def console(*, errors: bool = False) -> Console:
    """Make a console that prints text as it is: no markup, no emoji, no guessed colours.

    Colours only on a terminal and not if ``NO_COLOR`` is set. Into a pipe, lines are not wrapped.
    """
    from rich.console import Console

    terminal = (sys.stderr if errors else sys.stdout).isatty()
    width = None if terminal or os.environ.get("COLUMNS", "").isdigit() else 1000
    return Console(stderr=errors, markup=False, emoji=False, highlight=False, width=width)


def print_table(table: Table) -> None:
    """Print a table on standard output, without trailing blanks in its last column."""
    out = console()
    with out.capture() as captured:
        out.print(table)
    sys.stdout.write("".join(line.rstrip() + "\n" for line in captured.get().splitlines()))


def print_rows(
    rows: Sequence[Sequence[str]],
    *,
    heads: Sequence[str] = (),
    colours: Mapping[str, str] | None = None,
) -> None:
    """Print rows whose last cell is a sentence: beside the other cells if it fits, else below."""
    from rich.cells import cell_len
    from rich.text import Text

    out = console()
    body = [[printable(cell, 1200) for cell in row] for row in rows]
    short = [row[:-1] for row in body] + ([list(heads[:-1])] if heads else [])
    widths = [max(map(cell_len, column)) + 2 for column in zip(*short, strict=True)]
    left = sum(widths)
    room = out.width - left
    lines = [(list(heads), "bold")] if heads else []
    lines += [(row, "") for row in body]
    for row, style in lines:
        padded = [
            cell + " " * (width - cell_len(cell))
            for cell, width in zip(row[:-1], widths, strict=True)
        ]
        beside = room >= min(_SENTENCE, len(row[-1]))
        indent = " " * (left if beside else 4)
        fits = max(20, out.width - len(indent))
        sentence = textwrap.wrap(row[-1], fits, break_on_hyphens=False) if row[-1] else []
        first = sentence[0] if beside and sentence else ""
        line = Text(row[0], style=style or (colours or {}).get(row[0], ""))
        line.append("".join(padded)[len(row[0]) :] + first, style=style)
        line.rstrip()
        out.print(line, soft_wrap=True)
        for part in sentence[beside:] if not style else ():
            out.print(Text(indent + part), soft_wrap=True)


def versions() -> str:
    """List the versions that matter; that of torch comes from its metadata, which is fast."""
    from importlib.metadata import PackageNotFoundError, version

    from roledrift import __version__

    parts = [f"roledrift {__version__}", f"python {sys.version.split()[0]}"]
    try:
        parts.append(f"torch {version('torch')}")
    except PackageNotFoundError:
        parts.append("torch not installed")
    return ", ".join(parts)
