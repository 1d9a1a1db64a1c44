"""Runs for notebooks and scripts: what was recorded, what it means, and frames to compute on."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, overload

from roledrift.analysis import display, frames
from roledrift.config import Config, CostsConfig, watched_with
from roledrift.costs import Costs, costs, with_given
from roledrift.detect.conclusion import Conclusion, conclude
from roledrift.detect.suite import Replay, replay_run
from roledrift.errors import RoleDriftError, StoreError
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.records import RunHeader, Sample, StepRecord
from roledrift.store import reader
from roledrift.store.reader import RunState, StoredRun, find_runs, reference_steps
from roledrift.workflow import Workflow

if TYPE_CHECKING:
    import pandas as pd


class Run:
    """A recorded run. Files are read when they are first needed, then kept.

    Open one with :func:`open_run`.

    Attributes:
        path: Where it lies.
        header: What the run is: name, workflow, host, task, configuration, notes.
    """

    def __init__(self, stored: StoredRun) -> None:
        self._stored = stored
        self.path: Path = stored.path
        self.header: RunHeader = stored.header

    @property
    def name(self) -> str:
        """Name of the run; of its directory if it was given none."""
        return self.header.run or self.path.name

    @property
    def workflow(self) -> Workflow:
        """Roles, slots and policies."""
        return self.header.workflow

    @property
    def state(self) -> RunState:
        """``finished``, ``open`` (not closed by its trainer) or ``empty`` (without steps)."""
        return self._stored.state

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read, one sentence each; of texts only once they were asked for."""
        return self._stored.problems

    def steps(self) -> list[StepRecord]:
        """One record per step, in order.

        Raises:
            SchemaError: If a line was written by a newer version.
        """
        return self._stored.steps()

    def samples(self, limit: int | None = None) -> list[Sample]:
        """Kept texts as records, in the order of steps.

        Args:
            limit: About so many at most, spread over the steps; None for all.
        """
        return self._stored.samples(limit)

    def frame(self) -> pd.DataFrame:
        """Return every statistic of every step as a tidy pandas frame.

        Columns:
            step: Optimizer iteration of the trainer.
            scope: ``role``, ``slot``, ``all roles`` (pooled over roles) or ``step`` (a number that
                the trainer logged for the whole step, such as ``val_accuracy``).
            role: Name of the role; ``*`` for the scopes ``all roles`` and ``step``.
            slot: Number of the copy of the role, from 0; missing unless the scope is ``slot``.
            statistic: Name, as in the documentation of statistics; ``gradient_norm`` too.
            mean: The statistic itself.
            n: How many tokens, spans or groups it is the mean of.
            sd, low, high: Spread (population) and extremes of the row values, if rows were seen.
            p05, p50, p95: Percentiles, of lengths; ``p01`` and ``p99`` of probability ratios.

        A number that does not exist is NaN. A row is unique by the first five columns.

        Raises:
            SchemaError: If a line was written by a newer version.
        """
        frame = frames.frame_of(self.steps(), self.workflow.role_names)
        _warn(self._stored, "" if len(frame) else "holds no step yet; the frame is empty")
        return frame

    def texts(self, limit: int | None = None) -> pd.DataFrame:
        """Return the kept texts as a pandas frame, one row per text.

        The columns are the fields of :class:`roledrift.Sample`. A run without texts gives an empty
        frame and a warning that says how texts are kept.

        Args:
            limit: About so many at most, spread over the steps; None for all.
        """
        samples = self.samples(limit)
        none = "holds no texts; hand some to the monitor (text=, add_samples) to keep them"
        _warn(self._stored, "" if samples else none)
        return frames.texts_of(samples)

    def replay(self, config: Config | None = None) -> Replay:
        """Judge the recorded steps anew with the detectors of this version.

        Args:
            config: What to judge by; None is what the run was watched with.
        """
        config = config or watched_with(self.header.config)[0]
        reference = reference_steps(config.baseline.reference, self.workflow)
        return replay_run(self.header, self.steps(), config, reference=reference)

    @cached_property
    def _replayed(self) -> Replay:
        return self.replay()

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Transitions of alerts in order: as recorded, or replayed if the run was not judged."""
        alerts = self._stored.alerts()
        return tuple(alerts) if alerts or self._stored.judged else self._replayed.alerts

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """Incidents, the worst first: as recorded, or replayed if the run was not judged."""
        return self._stored.incidents() if self._stored.judged else self._replayed.incidents

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The last verdict of each detector on each role, from a replay."""
        return self._replayed.verdicts

    @cached_property
    def verdict(self) -> Conclusion:
        """What the run is, in one word and one sentence.

        ``verdict.outcome`` is ``failing``, ``input problem``, ``suspicious``, ``no verdict`` or
        ``clean``; ``verdict.sentence`` is the headline of every other output.
        """
        incidents = self.incidents
        verdicts = () if incidents else self.verdicts
        return conclude(verdicts, incidents, len(self.steps()))

    def costs(self, *, devices: int = 0, gpu_hour_cost: float = 0.0) -> Costs:
        """Estimate what the run has cost so far: rollouts that moved nothing, GPU hours, money.

        Args:
            devices: GPUs that the run occupies; 0 is what the run or its configuration says.
            gpu_hour_cost: What a GPU hour costs; 0 is what the configuration says.
        """
        given = with_given(
            watched_with(self.header.config)[0].costs, CostsConfig(devices, gpu_hour_cost)
        )
        return costs(self.steps(), self.header, given)

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {_roles(self.workflow)}, at {str(self.path)!r}>"

    def _repr_html_(self) -> str:
        try:
            verdict, steps = self.verdict, self.steps()
            incidents = self.incidents[1:]
        except RoleDriftError as error:
            return f"<p>{display.headline('unreadable', str(error))}</p>"
        span = f"{steps[0].step} to {steps[-1].step}, {self.state}" if steps else "none yet"
        rows = [("roles", _roles(self.workflow)), ("steps", span)]
        rows += [("texts", f"{self._stored.sample_count:,}"), ("path", str(self.path))]
        rows += [("not read", problem) for problem in self.problems[:3]]
        cells = [[display.safe(name), display.safe(text)] for name, text in rows]
        cells += [
            ["also", display.headline(incident.outcome, incident.sentence)]
            for incident in incidents
        ]
        head = f"<b>{display.safe(self.name)}</b>"
        headline = display.headline(verdict.outcome, verdict.sentence)
        return f"<div>{head}<br>{headline}{display.table((), cells)}</div>"


class Runs(Sequence[Run]):
    """The runs of a folder, in the order of their paths.

    ``runs[0]`` and ``runs["name"]`` give one of them; a name is a path below the folder.

    Attributes:
        folder: As it was given to :func:`open_runs`.
        problems: Why runs were left out, one sentence each.
    """

    def __init__(self, folder: Path | str, runs: dict[str, Run], problems: Sequence[str]) -> None:
        self.folder, self._runs = folder, runs
        self.problems: list[str] = list(problems)

    @property
    def names(self) -> tuple[str, ...]:
        """Path of each run below the folder; the column ``run`` of the frames."""
        return tuple(self._runs)

    @overload
    def __getitem__(self, which: int | str) -> Run: ...

    @overload
    def __getitem__(self, which: slice) -> list[Run]: ...

    def __getitem__(self, which: int | str | slice) -> Run | list[Run]:
        if not isinstance(which, str):
            return list(self._runs.values())[which]
        if which not in self._runs:
            raise KeyError(f"no run {which!r} in {self.folder}; there are {', '.join(self.names)}")
        return self._runs[which]

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def frame(self) -> pd.DataFrame:
        """Return :meth:`Run.frame` of all runs below each other, with the column ``run`` first."""
        return self._together("frame")

    def texts(self, limit: int | None = None) -> pd.DataFrame:
        """Return :meth:`Run.texts` of all runs, with the column ``run`` first.

        Args:
            limit: About so many per run at most; None for all.
        """
        return self._together("texts", limit)

    def _together(self, what: str, *arguments: int | None) -> pd.DataFrame:
        import pandas as pd

        columns = frames.COLUMNS if what == "frame" else frames.TEXT_COLUMNS
        parts = []
        for name, run in self._runs.items():
            try:
                part = getattr(run, what)(*arguments)
            except RoleDriftError as error:
                self.problems.append(f"{name}: left out, {error}")
                warnings.warn(self.problems[-1], stacklevel=3)
                continue
            part.insert(0, "run", pd.Series([name] * len(part), dtype="str"))
            parts.append(part)
        filled = [part for part in parts if len(part)] or parts[:1]
        return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame(
            columns=["run", *columns]
        )  # fmt: skip

    def __repr__(self) -> str:
        left_out = f", {len(self.problems)} problems" if self.problems else ""
        return f"<Runs in {str(self.folder)!r}: {len(self)}{left_out}>"

    def _repr_html_(self) -> str:
        rows = []
        for name, run in self._runs.items():
            headline = display.headline(*_known(run))
            rows.append([display.safe(name), display.safe(_roles(run.workflow)), headline])
        rows += [["not read", "", display.safe(problem)] for problem in self.problems]
        return display.table(("run", "roles", "what happened"), rows)


def open_run(path: Path | str) -> Run:
    """Open a recorded run.

    Args:
        path: Run directory, or its ``run.json``.

    Raises:
        StoreError: If there is no run at ``path``, or its header cannot be read.
        SchemaError: If the run was written by a newer version.
    """
    return Run(reader.open_run(path))


def open_runs(folder: Path | str) -> Runs:
    """Open all runs in a folder and below; runs that cannot be opened are named and left out.

    Args:
        folder: Folder of runs; a run directory is a folder of one.

    Raises:
        StoreError: If there is no such folder, or no run in it can be opened.
    """
    paths = find_runs(folder)
    runs: dict[str, Run] = {}
    problems: list[str] = []
    for path in paths:
        base = Path(folder)
        name = path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name
        try:
            runs[path.name if name == "." else name] = open_run(path)
        except RoleDriftError as error:
            problems.append(f"left out: {error}")
    if not runs:
        why = f": {problems[0]}" if problems else "; give a folder that holds run directories"
        raise StoreError(f"{folder}: no run here or below{why}")
    for problem in problems:
        warnings.warn(problem, stacklevel=2)
    return Runs(folder, runs, problems)


def _known(run: Run) -> tuple[str, str]:
    """Outcome and sentence as far as they were recorded: a folder is shown without a replay."""
    try:
        incidents = run._stored.incidents()
    except RoleDriftError as error:
        return "unreadable", str(error)
    if incidents:
        return incidents[0].outcome, incidents[0].sentence
    if run._stored.judged:
        return "", "No incident was recorded."
    return "", "Not judged while it was recorded; .verdict judges it."


def _roles(workflow: Workflow) -> str:
    parts = [role.name + (f" ×{role.slots}" if role.slots > 1 else "") for role in workflow.roles]
    return f"{workflow.name} ({', '.join(parts)})"


def _warn(stored: StoredRun, lack: str) -> None:
    """Say what could not be read, or why a frame is empty, as one warning of the caller."""
    sentences = [f"{stored.path}: {lack}"] if lack else []
    if stored.problems:
        more = f" and {len(stored.problems) - 1} more, see .problems" * (len(stored.problems) > 1)
        sentences.append(f"{stored.path}: {stored.problems[0]}{more}")
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=3)
