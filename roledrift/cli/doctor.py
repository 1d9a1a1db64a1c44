"""``roledrift doctor``: check this machine's setup, and what a run can answer."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from roledrift import __version__
from roledrift.cli import console
from roledrift.cli.foreign import opened
from roledrift.cli.settings import Item, settings
from roledrift.errors import RoleDriftError
from roledrift.extensions import KINDS, extensions
from roledrift.notify.console import printable
from roledrift.store.reader import find_runs

if TYPE_CHECKING:
    from roledrift.judgement import Verdict
    from roledrift.report.judged_run import JudgedRun

_LIBRARIES = ("numpy", "pyarrow", "matplotlib", "jinja2", "typer", "rich")
_OPTIONAL = {
    "torch": "to watch training (pip install torch)",
    "trl": "for RoleDriftCallback (pip install torch transformers trl peft)",
    "transformers": "for RoleDriftCallback (pip install torch transformers trl peft)",
    "wandb": "to log beside Weights & Biases (pip install wandb)",
}


def doctor(path: str | None = None, *, webhook: bool = False, as_json: bool = False) -> int:
    """Check this machine and its settings and, with a path, a run.

    Returns:
        The exit code: 0; 2 if something is broken or the run cannot be read.
    """
    parts: dict[str, Sequence[Item]] = {"machine": machine(), "settings": settings(test=webhook)}
    parts["run"] = ()
    try:
        if path is not None:
            with opened((path,)) as ((_, place),):
                parts["run"] = of_runs(place)
    except (RoleDriftError, OSError) as error:
        return console.fail(console.failure_of(error, path), as_json=as_json)
    items = [item for part in parts.values() for item in part]
    if as_json:
        plain = {name: [asdict(item) for item in part] for name, part in parts.items()}
        console.write_json({"schema": "roledrift.doctor/1"} | plain)
    else:
        _print("This machine", parts["machine"])
        _print("Settings", parts["settings"])
        if path is not None:
            _print(f"What {printable(path)} can answer", parts["run"])
    return console.FAILED if any(item.state == "broken" for item in items) else console.CLEAN


def machine() -> Sequence[Item]:
    """Check versions, optional libraries, extensions, and whether this directory is writable."""
    here = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    items = [Item("roledrift", "ok", __version__), Item("python", "ok", here)]
    items += [_library(name, "broken", f"pip install {name}") for name in _LIBRARIES]
    items += [_library(name, "absent", use) for name, use in _OPTIONAL.items()]
    return [*items, _directory(), _terminal(), *_extensions()]


def _library(name: str, without: Literal["absent", "broken"], advice: str) -> Item:
    try:
        return Item(name, "ok", version(name))
    except PackageNotFoundError:
        return Item(name, without, "not installed", advice)


def _extensions() -> Iterator[Item]:
    for kind in KINDS:
        for extension in extensions(kind):
            text = extension.fault or f"brought by {extension.origin}"
            advice = f"correct or uninstall {extension.origin}" if extension.fault else ""
            state: Literal["ok", "broken"] = "broken" if extension.fault else "ok"
            yield Item(f"{kind}: {extension.name}", state, text, advice)


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
    free = shutil.disk_usage(place).free / 1e9
    return Item("directory", "ok", f"{place} can be written, {free:.3g} GB are free")


def _terminal() -> Item:
    coding = sys.stdout.encoding or "unknown"
    out = console.console()
    colour = "colours" if out.color_system and not out.no_color else "no colours"
    width = f", {out.width} columns" if out.is_terminal else ", no terminal"
    return Item("output", "ok", f"{coding}, {colour}{width}")


def of_runs(path: str) -> Sequence[Item]:
    """List what each run can answer; in a folder, every topic begins with the run's name."""
    runs = find_runs(path)
    if len(runs) < 2:
        return of_run(path)
    return [
        replace(item, topic=f"{run.name}: {item.topic}")
        for run in runs
        for item in of_run(str(run))
    ]


def of_run(path: str) -> Sequence[Item]:
    """List what a run can and cannot answer, with the setting that would supply the rest."""
    from roledrift.measure.catalogue import charted
    from roledrift.report.judged_run import load

    view = load(Path(path), "run1")
    items = [Item("run", "ok", f"{view.name}: {len(view.records)} steps, {view.state}")]
    items += [Item("reading", "broken", problem, "see the named file") for problem in view.problems]
    for detector in dict.fromkeys(verdict.detector for verdict in view.verdicts):
        items.append(_judged(detector, [v for v in view.verdicts if v.detector == detector]))
    for statistic in charted():
        roles = [role for role in view.roles if view.curve(role, statistic.name)]
        if roles:
            items.append(Item(statistic.title, "ok", f"of {', '.join(roles)}"))
        else:
            items.append(Item(statistic.title, "absent", "not measured", statistic.supply))
    return [*items, *_rest(view), _gradients(view)]


def _judged(detector: str, verdicts: Sequence[Verdict]) -> Item:
    """Whom a detector judges, or why nobody."""
    withheld = [verdict for verdict in verdicts if verdict.state == "no verdict"]
    reached = [console.role(verdict.role) for verdict in verdicts if verdict not in withheld]
    needs = sorted({need for verdict in verdicts for need in verdict.needs})
    advice = f"needs {', '.join(needs)}" if needs else ""
    if reached:
        return Item(detector, "ok", f"judges {', '.join(reached)}", advice)
    reason = next((verdict.reason for verdict in withheld if verdict.reason), "")
    if needs and reason.startswith("needs "):
        reason = ""  # the advice says it, of all roles
    return Item(detector, "absent", reason or "no verdict", advice)


def _rest(view: JudgedRun) -> list[Item]:
    texts, validated = view.texts, bool(view.validation)
    asked = (
        ("texts", bool(texts), f"{texts} kept", "text in RoleBatch, [sampling] per_role above 0"),
        ("validation", validated, "recorded", "totals={'val_accuracy': ...} in end_step"),
    )
    return [
        Item(topic, "ok" if known else "absent", text if known else "none", "" if known else how)
        for topic, known, text, how in asked
    ]


def _gradients(view: JudgedRun) -> Item:
    """Whether role gradients were measured, and how much of the gradient they are."""
    from roledrift.report.sections.gradients import closure, refusals

    steps = sum(bool(record.gradients) for record in view.records)
    refused = refusals(view.records)
    if not steps and not refused:
        advice = "attach a gradient probe (tier business)"
        return Item("role gradients", "absent", "none", advice)
    text = f"measured in {steps} of {len(view.records)} steps. {closure(view.records)}".strip()
    advice = f"refused: {refused}" if refused else ""
    return Item("role gradients", "ok" if steps else "absent", text, advice)


def _print(title: str, items: Sequence[Item]) -> None:
    from rich.text import Text

    console.console().print(Text(title, style="bold"))
    rows = [
        (item.state, item.topic, f"{item.text} -> {item.advice}" if item.advice else item.text)
        for item in items
    ]
    console.print_rows(rows, colours={"ok": "green", "absent": "yellow", "broken": "red"})
