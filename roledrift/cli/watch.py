"""``roledrift watch``: runs as they go, with their alerts and a heartbeat."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.config import Config, from_mapping
from roledrift.detect.panel import Panel
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.notify.console import printable
from roledrift.records import Alert, StepRecord
from roledrift.store.reader import Run, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for

if TYPE_CHECKING:
    from rich.table import Table

_BARS, _ASCII = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_WIDTH = 24
_SHOWN = (("length", "p50", "length"), ("reward", "mean", "reward"), ("update.k3", "mean", "k3"))


@dataclass(slots=True)
class Watched:
    """One run and what was seen of it.

    Attributes:
        last: Last step that was judged; None before the first.
        changed: When its files last changed, seconds since 1970.
    """

    path: Path
    panel: Panel
    records: list[StepRecord] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    last: int | None = None
    size: int = -1
    changed: float = 0.0
    state: str = "empty"


@dataclass(frozen=True, slots=True)
class Watching:
    """How runs are watched.

    Attributes:
        every: Seconds between two looks.
        until_alert: Leave with exit code 1 at the first alert of level WARN or ERROR, or silence.
        once: Look once and leave.
        clock: Seconds since 1970; for tests.
    """

    every: float = 5.0
    until_alert: bool = False
    once: bool = False
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def watch(paths: Sequence[str], how: Watching | None = None, *, as_json: bool = False) -> int:
    """Follow runs until all have finished; alerts and silence are said as they come.

    Args:
        paths: Runs or folders of runs.
        how: Pace and end.
        as_json: Say nothing and print one JSON document at the end.

    Returns:
        The exit code: 0; 1 if an alert above INFO came or a run is silent at the end; 2 if a run
        cannot be read; 3 if there is none.
    """
    how = how or Watching()
    watched: dict[Path, Watched] = {}
    teller = _Teller(quiet=as_json)
    try:
        while True:
            for path in [run for given in paths for run in find_runs(given)]:
                if path not in watched:
                    watched[path] = _begin(path)
                _look(watched[path], how, teller)
            if not watched:
                failed = console.failure("inconclusive", f"{', '.join(paths)}: no run found here")
                console.fail(failed, as_json=as_json)
                return console.INCONCLUSIVE
            teller.draw(list(watched.values()))
            bad = any(_is_bad(one) for one in watched.values())
            over = all(one.state == "finished" for one in watched.values())
            if how.once or over or (bad and how.until_alert):
                break
            how.sleep(how.every)
    except (RoleDriftError, OSError) as error:
        gone = next((path for path in paths if not Path(path).exists()), None)
        return console.fail(console.failure_of(error, gone), as_json=as_json)
    finally:
        teller.close()
    if as_json:
        console.write_json(_document(list(watched.values())))
    return console.FINDINGS if bad else console.CLEAN


def _begin(path: Path) -> Watched:
    run = open_run(path)
    try:
        config = from_mapping(run.header.config)
    except ConfigError:
        config = Config()
    reference = reference_steps(config.baseline.reference, run.header.workflow)
    panel = Panel(run.header.workflow, config, reference=reference, host=run.header.host)
    return Watched(path, panel)


def _look(one: Watched, how: Watching, teller: _Teller) -> None:
    size, changed = _size(one.path)
    if size != one.size:
        one.size, one.changed = size, changed
        run = open_run(one.path)
        for record in _fresh(run, one):
            alerts = one.panel.update(record)
            one.records.append(record)
            one.last = record.step
            teller.step(one, record)
            for alert in alerts:
                one.alerts.append(alert)
                teller.alert(one, alert)
        one.state = run.state
    quiet = silent_for(one.records, state=one.state, now=how.clock(), changed=one.changed)
    if quiet is not None:
        one.state = "silent"
        step = one.records[-1].step
        teller.say(f"{one.path.name}: silent for {quiet:.0f} s since step {step} (crashed?)")


def _is_bad(one: Watched) -> bool:
    return one.state == "silent" or any(alert.level != "INFO" for alert in one.alerts)


def _fresh(run: Run, one: Watched) -> list[StepRecord]:
    """Records after the last one judged; a run that went back to a checkpoint starts there."""
    records = run.steps()
    known = {record.step: record.writer for record in one.records}
    fresh = [record for record in records if known.get(record.step) != record.writer]
    if fresh and one.last is not None and fresh[0].step <= one.last:
        one.records = [record for record in one.records if record.step < fresh[0].step]
        fresh = [record for record in records if record.step >= fresh[0].step]
    return fresh


def _size(path: Path) -> tuple[int, float]:
    stats = [file.stat() for file in path.glob("*.jsonl")]
    return sum(one.st_size for one in stats), max((one.st_mtime for one in stats), default=0.0)


def sparkline(values: Sequence[float], *, plain: bool = False) -> str:
    """The last values as small bars; a gap for what is not finite."""
    shown = values[-_WIDTH:]
    finite = [value for value in shown if value == value and abs(value) != float("inf")]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    bars = _ASCII if plain else _BARS
    scale = (len(bars) - 1) / (high - low) if high > low else 0.0
    return "".join(
        bars[round((value - low) * scale)] if value in finite else " " for value in shown
    )


class _Teller:
    """Says what happens: a live table on a terminal, plain lines elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
        self._live: object | None = None
        if not quiet and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(console=console.console(), auto_refresh=False)
            self._live.start()

    def say(self, text: str) -> None:
        if not self._quiet:
            console.say(text)

    def step(self, one: Watched, record: StepRecord) -> None:
        if self._quiet or self._live is not None:
            return
        parts = []
        for role in sorted(name for name in record.groups if "/" not in name and name != "*"):
            stat = record.stat(role, "length")
            if stat is not None:
                value = stat.p50 if stat.p50 is not None else stat.mean
                parts.append(f"{role} {value:.4g} tokens")
        line = f"{one.path.name} step {record.step}: {', '.join(parts)}"
        sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()

    def alert(self, one: Watched, alert: Alert) -> None:
        if not self._quiet:
            state = f" {alert.state}" if alert.state != "open" else ""
            line = f"{one.path.name} {alert.level}{state} step {alert.step} {alert.title}"
            sys.stdout.write(printable(f"{line} [{alert.id}]") + "\n")
            sys.stdout.flush()

    def draw(self, watched: Sequence[Watched]) -> None:
        from rich.live import Live

        if isinstance(self._live, Live):
            self._live.update(table(watched, plain=self._plain), refresh=True)

    def close(self) -> None:
        from rich.live import Live

        if isinstance(self._live, Live):
            self._live.stop()


def table(watched: Sequence[Watched], *, plain: bool = False) -> Table:
    """One line per run and role, with sparklines, as a rich table."""
    from rich.table import Table
    from rich.text import Text

    found = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("run", "step", "state", "role", "verdict", *(name for _, _, name in _SHOWN)):
        found.add_column(heading)
    for one in watched:
        states = {verdict.role: verdict.state for verdict in one.panel.verdicts}
        worst: dict[str, str] = dict(states)
        for verdict in one.panel.verdicts:
            if verdict.state in ("watch", "drift"):
                worst[verdict.role] = verdict.state
        for index, (role, state) in enumerate(worst.items()):
            cells = [_curve(one.records, role, *which, plain=plain) for which in _SHOWN]
            first = (one.path.name, str(one.last), one.state) if index == 0 else ("", "", "")
            row = (*first, role, state, *cells)
            found.add_row(*(Text(printable(str(cell))) for cell in row))
    return found


def _curve(
    records: Sequence[StepRecord], role: str, name: str, attribute: str, _: str, *, plain: bool
) -> str:
    stats = [record.stat(role, name) for record in records[-_WIDTH:]]
    values = [getattr(stat, attribute) for stat in stats if stat is not None]
    numbers = [value for value in values if value is not None]
    return f"{sparkline(numbers, plain=plain)} {numbers[-1]:.3g}" if numbers else ""


def _document(watched: Sequence[Watched]) -> dict[str, object]:
    from roledrift.codec import plain

    runs = [
        {
            "path": str(one.path),
            "state": one.state,
            "steps": len(one.records),
            "last_step": one.last,
            "alerts": [plain(alert) for alert in one.alerts],
        }
        for one in watched
    ]
    return {"schema": "roledrift.watch/1", "runs": runs}
