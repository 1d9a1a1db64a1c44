"""``roledrift watch``: follow runs while they train, with their incidents and a heartbeat."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.cli.board import SHOWN, board
from roledrift.cli.check import exit_code
from roledrift.cli.watched import STEPS, Watched
from roledrift.config import watched_with
from roledrift.detect.suite import DetectorSuite
from roledrift.errors import RoleDriftError
from roledrift.notices import Notice
from roledrift.notify.console import line, printable
from roledrift.records import LENGTH_UNIT, StepRecord
from roledrift.store.reader import StoredRun, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for

if TYPE_CHECKING:
    from rich.live import Live

_SAID = ("{:.3g} {}", "reward {:.3g}", "k3 {:.3g}")


@dataclass(frozen=True, slots=True)
class Watching:
    """How runs are watched."""

    every: float = 5.0
    until_alert: bool = False
    once: bool = False
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def watch(paths: Sequence[str], how: Watching | None = None, *, as_json: bool = False) -> int:
    """Follow runs until all have finished, and print incidents and silences as they come.

    Returns:
        The exit code: 0; 1 if a run is failing, has an input problem or is silent at the end; 2 if
        something could not be read; 3 if there is no run, or no step in any.
    """
    how = how or Watching()
    watched: dict[Path, Watched] = {}
    broken: dict[Path, RoleDriftError] = {}
    teller = _Teller(quiet=as_json)
    try:
        while True:
            _follow_all(paths, watched, broken, how, teller)
            if not watched:
                return console.no_run(", ".join(paths), as_json=as_json)
            teller.draw(list(watched.values()))
            bad = any(_is_bad(run) for run in watched.values())
            over = all(run.state == "finished" for run in watched.values())
            if how.once or over or (bad and how.until_alert):
                break
            how.sleep(how.every)
    except BrokenPipeError:  # of standard output: the command knows what to do
        raise
    except (RoleDriftError, OSError) as error:
        gone = next((path for path in paths if not Path(path).exists()), None)
        return console.fail(console.failure_of(error, gone), as_json=as_json)
    finally:
        teller.close()
    if as_json:
        console.write_json(_document(list(watched.values()), broken))
    if bad or broken:
        return console.FINDINGS if bad else console.FAILED
    if any(run.records for run in watched.values()):
        return console.CLEAN
    teller.say(f"{', '.join(paths)}: no step recorded yet")
    return console.INCONCLUSIVE


def _follow_all(
    paths: Sequence[str],
    watched: dict[Path, Watched],
    broken: dict[Path, RoleDriftError],
    how: Watching,
    teller: _Teller,
) -> None:
    for path, below in [(run, Path(given)) for given in paths for run in find_runs(given)]:
        _follow(path, below, watched, broken, how, teller)
    if broken and not watched:
        raise next(iter(broken.values()))


def _follow(
    path: Path,
    below: Path,
    watched: dict[Path, Watched],
    broken: dict[Path, RoleDriftError],
    how: Watching,
    teller: _Teller,
) -> None:
    """Look at one run; what keeps it from being read is said once, and the others go on."""
    try:
        if path not in watched:
            watched[path] = _begin(path, below)
        _look(watched[path], how, teller)
        broken.pop(path, None)
    except RoleDriftError as error:
        if str(error) != str(broken.get(path)):
            broken[path] = error
            if watched:
                teller.say(str(error))


def _begin(path: Path, below: Path) -> Watched:
    run = open_run(path)
    config, _ = watched_with(run.header.config)
    reference = reference_steps(config.baseline.reference, run.header.workflow)
    suite = DetectorSuite(
        run.header.workflow,
        config,
        reference=reference,
        host=run.header.host,
        yardsticks=run.header.yardsticks,
    )
    note = run.header.notes.get(STEPS, "")
    planned = int(note) if note.isdecimal() else 0
    inside = below if path.is_relative_to(below) else None
    return Watched(path, suite, run.header.workflow.role_names, inside, planned)


def _look(run: Watched, how: Watching, teller: _Teller) -> None:
    size, changed = _size(run.path)
    if size != run.size:
        run.size, run.changed = size, changed
        stored = open_run(run.path)
        for record in _unjudged(stored, run):
            alerts = run.suite.update(record)
            run.records.append(record)
            run.last = record.step
            teller.step(run, record)
            run.alerts += alerts
            for notice in run.notices.update(run.suite.changed, alerts):
                teller.notice(run, notice)
        run.state = stored.state
    run.age = how.clock() - run.changed
    quiet = silent_for(run.records, state=run.state, now=how.clock(), changed=run.changed)
    if quiet is not None:
        run.state = "silent"
        step = run.records[-1].step
        teller.say(f"{run.name}: silent for {quiet:.0f} s since step {step} (crashed?)")


def _is_bad(run: Watched) -> bool:
    return run.state == "silent" or exit_code(run.conclusion.outcome) == console.FINDINGS


def _unjudged(stored: StoredRun, run: Watched) -> list[StepRecord]:
    """Records after the last one judged; a run that went back to a checkpoint starts there."""
    records = stored.steps()
    known = {record.step: record.writer for record in run.records}
    new = [record for record in records if known.get(record.step) != record.writer]
    if new and run.last is not None and new[0].step <= run.last:
        run.records = [record for record in run.records if record.step < new[0].step]
        new = [record for record in records if record.step >= new[0].step]
    return new


def _size(path: Path) -> tuple[int, float]:
    stats = [file.stat() for file in path.glob("*.jsonl")]
    return sum(file.st_size for file in stats), max((file.st_mtime for file in stats), default=0.0)


class _Teller:
    """Says what happens: a live table on a terminal, plain lines elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        self._live: Live | None = None
        # A dumb terminal cannot go back to draw over what it shows: it gets lines.
        if not quiet and sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
            from rich.live import Live

            self._live = Live(console=console.console(), auto_refresh=False)
            self._live.start()

    def say(self, text: str) -> None:
        if not self._quiet:
            console.say(text)

    def step(self, run: Watched, record: StepRecord) -> None:
        if self._quiet or self._live is not None:
            return
        parts = []
        for role in run.roles:
            seen = [
                template.format(value, record.labels.get(LENGTH_UNIT, "tokens"))
                for shown, template in zip(SHOWN, _SAID, strict=True)
                if (value := shown.of(record, role)) is not None
            ]
            if seen:
                parts.append(f"{role} {', '.join(seen)}")
        line = f"{run.name} step {record.step}: {'; '.join(parts) or 'no statistics of roles'}"
        sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()

    def notice(self, run: Watched, notice: Notice) -> None:
        if not self._quiet:
            sys.stdout.write(printable(f"{run.name}: {line(notice)}", 1400) + "\n")
            sys.stdout.flush()

    def draw(self, watched: Sequence[Watched]) -> None:
        if self._live is not None:
            width = self._live.console.width
            self._live.update(board(watched, plain=self._plain, width=width), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


def _document(
    watched: Sequence[Watched], broken: Mapping[Path, RoleDriftError]
) -> dict[str, object]:
    from roledrift.codec import plain

    runs = [
        {
            "path": str(run.path),
            "state": run.state,
            "steps": len(run.records),
            "last_step": run.last,
            "outcome": run.conclusion.outcome,
            "sentence": run.conclusion.sentence,
            "incidents": [plain(incident) for incident in run.suite.incidents],
            "alerts": [plain(alert) for alert in run.alerts],
        }
        for run in watched
    ]
    problems = [str(error) for error in broken.values()]
    return {"schema": "roledrift.watch/2", "runs": runs, "problems": problems}
