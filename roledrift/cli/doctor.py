"""``roledrift doctor``: is this machine set up, and what can this run answer?"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from roledrift import __version__
from roledrift.cli import console
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.extensions import KINDS, extensions
from roledrift.notify.console import printable

_LIBRARIES = ("numpy", "pyarrow", "matplotlib", "jinja2", "typer", "rich")
_OPTIONAL = {
    "torch": "to watch training (pip install torch)",
    "trl": "for RoleDriftCallback (pip install 'roledrift[trl]')",
    "transformers": "for RoleDriftCallback (pip install 'roledrift[trl]')",
    "wandb": "to log beside Weights & Biases (pip install 'roledrift[wandb]')",
    "fsspec": "to read runs from s3:// and the like (pip install fsspec)",
}
_SWITCHES = ("ROLEDRIFT_DIR", "ROLEDRIFT_CONFIG", "ROLEDRIFT_STRICT", "ROLEDRIFT_DISABLED")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was looked at.

    Attributes:
        state: ``ok``, ``absent`` (optional, or a question that cannot be answered) or ``broken``.
        text: What was found.
        advice: What to do about it; empty if nothing is needed.
    """

    topic: str
    state: Literal["ok", "absent", "broken"]
    text: str
    advice: str = ""


def doctor(path: str | None = None, *, as_json: bool = False) -> int:
    """Look at the machine and, with a path, at a run.

    Args:
        path: A run; None looks at the machine only.
        as_json: Print one JSON document.

    Returns:
        The exit code: 0, 2 if something is broken or the run cannot be read.
    """
    items = list(machine())
    try:
        questions = list(of_run(path)) if path is not None else []
    except (RoleDriftError, OSError) as error:
        return console.fail(console.failure_of(error, path), as_json=as_json)
    broken = any(one.state == "broken" for one in (*items, *questions))
    if as_json:
        console.write_json(
            {
                "schema": "roledrift.doctor/1",
                "machine": [asdict(one) for one in items],
                "run": [asdict(one) for one in questions],
            }
        )
    else:
        _print("This machine", items)
        if path is not None:
            _print(f"What {printable(path)} can answer", questions)
    return console.FAILED if broken else console.CLEAN


def machine() -> Sequence[Item]:
    """Versions, optional libraries, switches, and whether this directory can be written."""
    here = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    items = [Item("roledrift", "ok", __version__), Item("python", "ok", here)]
    for name in _LIBRARIES:
        found = _version(name)
        advice = "" if found else "pip install -U roledrift"
        items.append(Item(name, "ok" if found else "broken", found or "not installed", advice))
    for name, use in _OPTIONAL.items():
        found = _version(name)
        items.append(
            Item(name, "ok" if found else "absent", found or "not installed", "" if found else use)
        )
    for name in _SWITCHES:
        if os.environ.get(name):
            items.append(Item(name, "ok", f"{os.environ[name]} (from the environment)"))
    items += [_config(), _directory(), _terminal(), *_extensions()]
    return items


def _extensions() -> Iterator[Item]:
    for kind in KINDS:
        for one in extensions(kind):
            found = one.fault or f"brought by {one.origin}"
            advice = f"correct or uninstall {one.origin}" if one.fault else ""
            state: Literal["ok", "broken"] = "broken" if one.fault else "ok"
            yield Item(f"{kind}: {one.name}", state, found, advice)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _config() -> Item:
    from roledrift.config import load

    given = os.environ.get("ROLEDRIFT_CONFIG")
    if not given:
        return Item("configuration", "ok", "defaults; --config or ROLEDRIFT_CONFIG names a file")
    try:
        load(Path(given))
    except ConfigError as error:
        return Item("configuration", "broken", str(error), "correct the named keys")
    return Item("configuration", "ok", given)


def _directory() -> Item:
    """Writes, appends and renames: what a run directory needs of its file system."""
    place = Path.cwd()
    try:
        with tempfile.TemporaryDirectory(dir=place) as scratch:
            file = Path(scratch) / "draft"
            file.write_bytes(b"a")
            with file.open("ab") as stream:
                stream.write(b"b")
                os.fsync(stream.fileno())
            os.replace(file, Path(scratch) / "final")
    except OSError as error:
        text = f"{place}: {error.strerror or error}"
        return Item("directory", "broken", text, "change to one that can be written")
    return Item("directory", "ok", f"{place} can be written")


def _terminal() -> Item:
    coding = sys.stdout.encoding or "unknown"
    colour = "colours" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "no colours"
    return Item("output", "ok", f"{coding}, {colour}")


def of_run(path: str) -> Sequence[Item]:
    """What a run can answer and what it cannot, with the switch that would supply it."""
    from roledrift.report.sections.names import QUANTITIES, detector_name
    from roledrift.report.view import load

    view = load(Path(path), "run1")
    items = [Item("run", "ok", f"{view.name}: {len(view.records)} steps, {view.state}")]
    items += [Item("reading", "broken", one, "see the named file") for one in view.problems]
    for detector in dict.fromkeys(one.detector for one in view.verdicts):
        its = [one for one in view.verdicts if one.detector == detector]
        reached = [one.role for one in its if one.state != "no verdict"]
        needs = sorted({need for one in its for need in one.needs})
        said = next((one.reason for one in its if one.reason and one.state == "no verdict"), "")
        text = f"judges {', '.join(reached)}" if reached else (said or "no verdict")
        advice = f"needs {', '.join(needs)}" if needs else ""
        items.append(Item(detector_name(detector), "ok" if reached else "absent", text, advice))
    for quantity in QUANTITIES:
        there = [role for role in view.roles if view.curve(role, quantity.name)]
        text = f"of {', '.join(there)}" if there else "not measured"
        items.append(
            Item(
                quantity.title,
                "ok" if there else "absent",
                text,
                "" if there else quantity.supply,
            )
        )
    items += _rest(view.texts, bool(view.validation), any(r.gradients for r in view.records))
    return items


def _rest(texts: int, validated: bool, gradients: bool) -> list[Item]:
    asked = (
        ("texts", bool(texts), f"{texts} kept", "text in RoleBatch, [sampling] per_role above 0"),
        ("validation", validated, "recorded", "totals={'val_accuracy': ...} in end_step"),
        ("role gradients", gradients, "measured", "attach a gradient probe (tier business)"),
    )
    return [
        Item(topic, "ok" if there else "absent", text if there else "none", "" if there else how)
        for topic, there, text, how in asked
    ]


def _print(title: str, items: Sequence[Item]) -> None:
    from rich.table import Table
    from rich.text import Text

    colours = {"ok": "green", "absent": "yellow", "broken": "red"}
    console.console().print(Text(title, style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for one in items:
        state = Text(one.state, style=colours[one.state])
        cells = (one.topic, one.text, one.advice)
        table.add_row(state, *(Text(printable(cell)) for cell in cells))
    console.print_table(table)
