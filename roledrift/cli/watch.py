"""``roledrift watch``: runs as they go, with their incidents and a heartbeat."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from roledrift.cli import console
from roledrift.cli.check import exit_code
from roledrift.config import Config, recorded
from roledrift.detect.conclusion import Conclusion, conclude
from roledrift.detect.suite import DetectorSuite
from roledrift.errors import ConfigError, RoleDriftError
from roledrift.judgement import Alert
from roledrift.notices import Notice, Notices
from roledrift.notify.console import line, printable
from roledrift.records import LENGTH_UNIT, StepRecord
from roledrift.report.moods import MOODS, Mood, mood_of, still_open, urgency
from roledrift.store.reader import StoredRun, find_runs, open_run, reference_steps
from roledrift.store.silence import silent_for
from roledrift.sums import EVERYONE

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

_SAID = ("{:.3g} {}", "reward {:.3g}", "k3 {:.3g}")
_BARS, _ASCII = "▁▂▃▄▅▆▇█", "_.-=+*#@"
_WIDTH, _NARROW = 24, 6
_NUMBER = 9  # a blank and a number of three digits, such as 1.23e-05
_VERDICT = 15
_ORDER = ("", "no verdict", *(mood for mood in MOODS if mood not in ("", "no verdict")))
"""Here a role that some detector could judge is not one without a verdict."""
_SHOWN = (("length", "p50", "length"), ("reward", "mean", "reward"), ("update.k3", "mean", "k3"))


@dataclass(slots=True)
class Watched:
    """One run and what was seen of it.

    Attributes:
        last: Last step that was judged; None before the first.
        changed: When its files last changed, seconds since 1970.
    """

    path: Path
    suite: DetectorSuite
    roles: tuple[str, ...] = ()
    records: list[StepRecord] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    notices: Notices = field(default_factory=Notices)
    last: int | None = None
    size: int = -1
    changed: float = 0.0
    state: str = "empty"

    @property
    def conclusion(self) -> Conclusion:
        """What the run is by now."""
        return conclude(self.suite.verdicts, self.suite.incidents, len(self.records))


@dataclass(frozen=True, slots=True)
class Watching:
    """How runs are watched.

    Attributes:
        every: Seconds between two looks.
        until_alert: Leave with exit code 1 as soon as a run is failing, has an input problem or is
            silent.
        once: Look once and leave.
        clock: Seconds since 1970; for tests.
    """

    every: float = 5.0
    until_alert: bool = False
    once: bool = False
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


def watch(paths: Sequence[str], how: Watching | None = None, *, as_json: bool = False) -> int:
    """Follow runs until all have finished; incidents and silence are said as they come.

    Args:
        paths: Runs or folders of runs.
        how: Pace and end.
        as_json: Say nothing and print one JSON document at the end.

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
            _see_all(paths, watched, broken, how, teller)
            if not watched:
                return console.no_run(", ".join(paths), as_json=as_json)
            teller.draw(list(watched.values()))
            bad = any(_is_bad(one) for one in watched.values())
            over = all(one.state == "finished" for one in watched.values())
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
    if any(one.records for one in watched.values()):
        return console.CLEAN
    teller.say(f"{', '.join(paths)}: no step recorded yet")
    return console.INCONCLUSIVE


def _see_all(
    paths: Sequence[str],
    watched: dict[Path, Watched],
    broken: dict[Path, RoleDriftError],
    how: Watching,
    teller: _Teller,
) -> None:
    for path in [run for given in paths for run in find_runs(given)]:
        _see(path, watched, broken, how, teller)
    if broken and not watched:
        raise next(iter(broken.values()))


def _see(
    path: Path,
    watched: dict[Path, Watched],
    broken: dict[Path, RoleDriftError],
    how: Watching,
    teller: _Teller,
) -> None:
    """Look at one run; what keeps it from being read is said once, and the others go on."""
    try:
        if path not in watched:
            watched[path] = _begin(path)
        _look(watched[path], how, teller)
        broken.pop(path, None)
    except RoleDriftError as error:
        if str(error) != str(broken.get(path)):
            broken[path] = error
            if watched:
                teller.say(str(error))


def _begin(path: Path) -> Watched:
    run = open_run(path)
    try:
        config = recorded(run.header.config)
    except ConfigError:
        config = Config()
    reference = reference_steps(config.baseline.reference, run.header.workflow)
    suite = DetectorSuite(
        run.header.workflow,
        config,
        reference=reference,
        host=run.header.host,
        yardsticks=run.header.yardsticks,
    )
    return Watched(path, suite, run.header.workflow.role_names)


def _look(one: Watched, how: Watching, teller: _Teller) -> None:
    size, changed = _size(one.path)
    if size != one.size:
        one.size, one.changed = size, changed
        run = open_run(one.path)
        for record in _fresh(run, one):
            alerts = one.suite.update(record)
            one.records.append(record)
            one.last = record.step
            teller.step(one, record)
            one.alerts += alerts
            for notice in one.notices.update(one.suite.changed, alerts):
                teller.notice(one, notice)
        one.state = run.state
    quiet = silent_for(one.records, state=one.state, now=how.clock(), changed=one.changed)
    if quiet is not None:
        one.state = "silent"
        step = one.records[-1].step
        teller.say(f"{one.path.name}: silent for {quiet:.0f} s since step {step} (crashed?)")


def _is_bad(one: Watched) -> bool:
    return one.state == "silent" or exit_code(one.conclusion.outcome) == console.FINDINGS


def _fresh(run: StoredRun, one: Watched) -> list[StepRecord]:
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


def sparkline(values: Sequence[float], *, plain: bool = False, width: int = _WIDTH) -> str:
    """The last values as small bars; a gap for what is not finite."""
    shown = values[-width:]
    finite = [value for value in shown if math.isfinite(value)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    bars = _ASCII if plain else _BARS
    scale = (len(bars) - 1) / (high - low) if high > low else 0.0
    return "".join(
        bars[round((value - low) * scale)] if math.isfinite(value) else " " for value in shown
    )


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

    def step(self, one: Watched, record: StepRecord) -> None:
        if self._quiet or self._live is not None:
            return
        parts = []
        for role in one.roles:
            seen = [
                said.format(value, record.labels.get(LENGTH_UNIT, "tokens"))
                for (name, attribute, _), said in zip(_SHOWN, _SAID, strict=True)
                if (value := getattr(record.stat(role, name), attribute, None)) is not None
            ]
            if seen:
                parts.append(f"{role} {', '.join(seen)}")
        line = f"{one.path.name} step {record.step}: {'; '.join(parts) or 'no statistics of roles'}"
        sys.stdout.write(printable(line) + "\n")
        sys.stdout.flush()

    def notice(self, one: Watched, notice: Notice) -> None:
        if not self._quiet:
            sys.stdout.write(printable(f"{one.path.name}: {line(notice)}", 1400) + "\n")
            sys.stdout.flush()

    def draw(self, watched: Sequence[Watched]) -> None:
        if self._live is not None:
            width = self._live.console.width
            self._live.update(board(watched, plain=self._plain, width=width), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()


def board(watched: Sequence[Watched], *, plain: bool = False, width: int = 100) -> Text:
    """Per run its headline and a line per role, with sparklines as wide as there is room."""
    from rich.text import Text

    roles = [role for one in watched for role, _ in _worst(one)]
    role_width = max((len(console.role(role)) for role in roles), default=4) + 2
    room = (width - 2 - role_width - _VERDICT) // len(_SHOWN) - 2 - _NUMBER
    bars = 0 if room < _NARROW else min(room, _WIDTH)
    heads = "".join(f"{name:<{bars + _NUMBER + 2}}" for _, _, name in _SHOWN)
    blank = " " * (2 + role_width + _VERDICT)
    shown = Text(f"{blank}{heads}".rstrip(), style="bold", no_wrap=True, overflow="crop")
    for one in sorted(watched, key=_urgency):
        conclusion = one.conclusion
        step = "no step yet" if one.last is None else f"step {one.last}"
        shown.append(f"\n{printable(one.path.name, 60)}  {step}  {one.state}  ", style="bold")
        shown.append(conclusion.outcome, style=console.COLOURS.get(conclusion.outcome, ""))
        if one.last is not None:
            for part in textwrap.wrap(printable(conclusion.sentence, 1200), max(width - 2, 20)):
                shown.append(f"\n  {part}", style="not bold")
        for role, mood in _worst(one):
            cells = (_curve(one.records, role, *which[:2], plain, bars) for which in _SHOWN)
            curves = "".join(f"{cell:<{bars + _NUMBER + 2}}" for cell in cells).rstrip()
            shown.append(f"\n  {printable(console.role(role)):<{role_width}}", style="not bold")
            colour = console.COLOURS.get(mood, "")
            shown.append(f"{mood:<{_VERDICT}}", style=f"not bold {colour}".replace("bold b", "b"))
            shown.append(curves, style="not bold")
    return shown


def _urgency(one: Watched) -> tuple[int, float, bool]:
    conclusion = one.conclusion
    return urgency(conclusion.outcome, conclusion.incident)


def _worst(one: Watched) -> list[tuple[str, Mood]]:
    """Roles and the worst that any detector says of them; all roles together come last."""
    states: dict[str, Mood] = dict.fromkeys(one.roles, "")
    alerts = still_open(one.alerts)
    for verdict in one.suite.verdicts:
        there, mood = states.get(verdict.role, ""), mood_of(verdict, alerts)
        states[verdict.role] = max(there, mood, key=_ORDER.index)
    return sorted(states.items(), key=lambda item: item[0] == EVERYONE)


def _curve(
    records: Sequence[StepRecord], role: str, name: str, attribute: str, plain: bool, bars: int
) -> str:
    stats = [record.stat(role, name) for record in records[-_WIDTH:]]
    values = [getattr(stat, attribute) for stat in stats if stat is not None]
    numbers = [value for value in values if value is not None]
    if not numbers:
        return ""
    drawn = f"{sparkline(numbers, plain=plain, width=bars):<{bars}} " if bars else ""
    return f"{drawn}{numbers[-1]:.3g}"


def _document(
    watched: Sequence[Watched], broken: Mapping[Path, RoleDriftError]
) -> dict[str, object]:
    from roledrift.codec import plain

    runs = [
        {
            "path": str(one.path),
            "state": one.state,
            "steps": len(one.records),
            "last_step": one.last,
            "outcome": one.conclusion.outcome,
            "sentence": one.conclusion.sentence,
            "incidents": [plain(incident) for incident in one.suite.incidents],
            "alerts": [plain(alert) for alert in one.alerts],
        }
        for one in watched
    ]
    problems = [str(one) for one in broken.values()]
    return {"schema": "roledrift.watch/2", "runs": runs, "problems": problems}
