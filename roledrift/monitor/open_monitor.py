"""Open a monitor with the usual components."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any, Literal

from roledrift.config import Config, from_mapping
from roledrift.detect.cards import Card
from roledrift.detect.catalogue import all_cards
from roledrift.detect.conclusion import conclude
from roledrift.detect.settings import checked, load
from roledrift.detect.suite import DetectorSuite
from roledrift.detect.yardsticks import combined
from roledrift.errors import ConfigError
from roledrift.measure.catalogue import probes_for
from roledrift.measure.installed import installed_probes
from roledrift.monitor.budget import Budget
from roledrift.monitor.components import MonitorComponents
from roledrift.monitor.metric_monitor import MetricMonitor
from roledrift.notify.chosen import heartbeat_for, notifiers_for
from roledrift.notify.console import LogBetweenBars, say
from roledrift.notify.metric_logger import MetricLogger
from roledrift.protocols import Notifier, Probe, Reducer, Sink
from roledrift.records import RunHeader
from roledrift.store.reader import is_run, open_run, reference_steps
from roledrift.store.starts import Starts, StartsWriter, earlier_starts
from roledrift.store.writer import RunWriter
from roledrift.workflow import POLICY, PRESETS, Workflow

_LOG = logging.getLogger("roledrift")
_VERSIONED = ("roledrift", "numpy", "torch", "transformers", "trl", "peft", "verl", "vllm")
_TEXTS = 2000
"""Texts of earlier segments that a resumed run looks at, to show them in its alerts."""


def open_monitor(  # noqa: PLR0913 (everything after ``out`` is optional and named)
    workflow: Workflow | str | Path | Mapping[str, int] | None = None,
    out: str | Path | None = None,
    *,
    config: Config | Mapping[str, Any] | str | Path | None = None,
    routing: Literal["shared", "isolated"] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    announce: bool = True,
    reducer: Reducer | None = None,
    notifiers: Sequence[Notifier] | None = None,
    sinks: Sequence[Sink] = (),
    detectors: Sequence[Card] = (),
    probes: Sequence[Probe] = (),
    **facts: Any,
) -> MetricMonitor:
    """Open a monitor that writes a run directory, judges every step and prints alerts.

    Args:
        workflow: A workflow, the name of a preset, or ``{"generator": 3, "aggregator": 1}``. Left
            out for a single policy: the run directory is then the only argument.
        out: Run directory; made if it is not there. None: ``runs/<workflow>-<time>``, see
            ``monitor.out``.
        config: As for :func:`read_config`.
        routing: Overrides the routing of ``workflow``.
        resume: Continue the run that ``out`` already holds, as a new segment.
        overwrite: Replace the run that ``out`` already holds.
        announce: Print a line when the run begins and one that says how it ended, on standard
            error, unless ``notify.console`` is off or ``notifiers`` are given.
        reducer: For several processes: adds over ranks; only its first rank writes and judges.
        notifiers: Where notices go; None: as the section ``notify`` says.
        sinks: Get every record besides the run directory.
        detectors: Cards of further detectors.
        probes: Further probes.
        facts: ``host``, ``task``, ``scale``, ``seed`` and ``notes`` (a mapping) for the header.

    Returns:
        A monitor; close it at the end. Under ``ROLEDRIFT_DISABLED=1`` it does nothing.

    Raises:
        ConfigError: If the workflow or the configuration is wrong, or the address of a webhook.
        StoreError: If ``out`` cannot be written, or holds a run and neither ``resume`` nor
            ``overwrite`` is set.
    """
    roles, out = _placed(workflow, out, routing)
    settings = read_config(config)
    header = _header(roles, out, settings, facts)
    strict, off = _on("ROLEDRIFT_STRICT"), _on("ROLEDRIFT_DISABLED")
    probes = () if off else (*probes_for(settings.tier, roles), *installed_probes(roles), *probes)
    parts = MonitorComponents(probes, reducer=reducer, budget=Budget(settings.budget))
    if off or (reducer is not None and not reducer.is_first()):
        return MetricMonitor(header, parts, strict=strict, out=out)
    tell = notifiers_for(settings.notify) if notifiers is None else tuple(notifiers)
    header, judge = _judge(header, settings, out, detectors)
    run = RunWriter(out, header, resume=resume, overwrite=overwrite, judged=True)
    parts = _judging(replace(parts, sinks=sinks, notifiers=tell), header, judge, run, resume=resume)
    shown = say if announce and settings.notify.console and notifiers is None else None
    if shown is not None:
        _announce(header, out, resume=resume)
    return MetricMonitor(header, parts, strict=strict, out=out, say=shown)


def _judging(
    parts: MonitorComponents,
    header: RunHeader,
    judge: DetectorSuite,
    run: RunWriter,
    *,
    resume: bool,
) -> MonitorComponents:
    """The parts of the process that judges and writes; its sinks and notifiers are further ones."""
    out, settings = run.path, judge.config
    starts = StartsWriter(out, header, lambda: _summary(judge))
    return replace(
        parts,
        judge=judge,
        sinks=(run, starts, *_logs(header.workflow, settings), *parts.sinks),
        history=(lambda: open_run(out).steps()) if resume else None,
        texts=(lambda: open_run(out).samples(_TEXTS)) if resume else None,
        conclusion=lambda steps: conclude(judge.verdicts, judge.incidents, steps).sentence,
        pulse=heartbeat_for(settings.notify, parts.notifiers, header),
    )


def _announce(header: RunHeader, out: Path, *, resume: bool) -> None:
    """Say what is watched and where its run directory is."""
    LogBetweenBars.install()
    what = "continues to watch" if resume else "watches"
    host = f"{header.host}: " if header.host else ""
    roles = header.workflow.described()
    own = header.versions.get("roledrift", "")
    say(f"roledrift {own} {what} {host}{roles}; run directory {out}")


def _placed(
    workflow: Workflow | str | Path | Mapping[str, int] | None,
    out: str | Path | None,
    routing: Literal["shared", "isolated"] | None,
) -> tuple[Workflow, Path]:
    """The workflow and the run directory; a path alone is that of a run of a single policy."""
    preset = str(workflow).lower().replace("-", "_") in PRESETS
    if out is None and isinstance(workflow, str | Path) and not preset:
        workflow, out = None, workflow
    if isinstance(workflow, Path):
        raise ConfigError(f"{workflow} is a path, not a workflow: pass open_monitor(workflow, out)")
    roles = Workflow.of(POLICY if workflow is None else workflow, routing=routing)
    return roles, _named(roles) if out is None else Path(out)


def _named(roles: Workflow) -> Path:
    """A run directory that is not there yet, named after the workflow and the time."""
    name = f"{roles.name}-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
    return free(Path("runs") / name)


def free(path: Path) -> Path:
    """Return ``path``, or ``path`` with the lowest number from 2 on that no run has."""
    numbered = (path.with_name(f"{path.name}-{number}") for number in count(2))
    return (
        path
        if not is_run(path)
        else next(candidate for candidate in numbered if not is_run(candidate))
    )


def _judge(
    header: RunHeader, config: Config, out: Path, more: Sequence[Card]
) -> tuple[RunHeader, DetectorSuite]:
    """The detectors, and the header with the yardsticks that the run's start is held against."""
    healthy = reference_steps(config.baseline.reference, header.workflow)
    if not healthy:
        header = replace(header, yardsticks=combined(earlier_starts(out, header)))
    suite = DetectorSuite(
        header.workflow,
        config,
        reference=healthy,
        detectors=(*all_cards().cards, *more) if more else None,
        yardsticks=header.yardsticks,
        host=header.host,
    )
    return header, suite


def _summary(judge: DetectorSuite) -> tuple[str, str, Starts]:
    """What the run is in the end, and how it started."""
    board = judge.board
    conclusion = conclude(judge.verdicts, judge.incidents, board.records)
    return conclusion.outcome, conclusion.sentence, board.starts()


def disabled() -> bool:
    """True if ``ROLEDRIFT_DISABLED=1`` is set; this is also logged."""
    if _on("ROLEDRIFT_DISABLED"):
        _LOG.warning("ROLEDRIFT_DISABLED is set: nothing is watched or written")
        return True
    return False


def _on(switch: str) -> bool:
    return os.environ.get(switch, "") not in ("", "0")


def _logs(roles: Workflow, config: Config) -> tuple[Sink, ...]:
    places = config.notify.forward
    return (MetricLogger(roles.role_names, *places),) if places else ()


def read_config(config: Config | Mapping[str, Any] | str | Path | None) -> Config:
    """Read a configuration from whatever names one; raises like :func:`open_monitor`.

    Args:
        config: A configuration, nested plain values, or the path of a TOML file. None: the file
            named by ``ROLEDRIFT_CONFIG``, else the defaults.

    Under ``ROLEDRIFT_DISABLED=1`` with everything off that costs time.
    """
    if config is None:
        config = os.environ.get("ROLEDRIFT_CONFIG") or Config()
    if isinstance(config, str | Path):
        config = load(config)
    else:
        config = checked(config if isinstance(config, Config) else from_mapping(config))
    if not disabled():
        return config
    # What trainers hand over is still taken from them, and dropped: it would pile up otherwise.
    return replace(
        config,
        tier="economy",
        sampling=replace(config.sampling, per_role=0, canaries=0),
        rescore=replace(config.rescore, rows_per_role=0),
        gradients=replace(config.gradients, every=0),
    )


def _header(workflow: Workflow, out: Path, config: Config, facts: Mapping[str, Any]) -> RunHeader:
    known = ("host", "task", "scale", "seed", "notes")
    unknown = sorted(set(facts) - set(known))
    if unknown:
        raise ConfigError(f"open_monitor got unknown facts {unknown}; known are {list(known)}")
    notes = {str(name): str(value) for name, value in (facts.get("notes") or {}).items()}
    return RunHeader(
        run=out.resolve().name,
        workflow=workflow,
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        host=str(facts.get("host", "")),
        task=str(facts.get("task", "")),
        scale=str(facts.get("scale", "")),
        seed=facts.get("seed"),
        # The address of a webhook is a secret; a run directory is passed around.
        config=asdict(replace(config, notify=replace(config.notify, webhook=""))),
        versions=_versions(),
        notes=notes,
    )


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _VERSIONED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions
