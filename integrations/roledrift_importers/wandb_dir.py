"""Runs that Weights & Biases left on disk: binary log and console output, segments stitched.

A preempted run leaves one folder per process start, all with the same id. Segments are read in the
order of their names (which begin with the date); a later one wins on the steps that it repeats. Of
two starts within a second, wandb puts ``-1`` behind the name of the second folder: the id is that
in the name of the log itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from roledrift.errors import StoreError
from roledrift.ingest import console_log, gaps
from roledrift.ingest.form import Claim, Facts, Format, Job, Source
from roledrift.ingest.keys import step_of, useful
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import head
from roledrift.ingest.rows import Events
from roledrift.ingest.unpacking import present
from roledrift.ingest.values import section, text
from roledrift.ingest.verl import series_of
from roledrift_importers import wandb_client, wandb_log
from roledrift_importers.experiment import named_after, parsed

_FOLDER = re.compile(r"(?:offline-)?run-(\d{8}_\d{6})-(.+)\Z")
_CONFIGURED = re.compile(r"^\s+experiment_name:\s*['\"]?([^\s'\"]+)", re.MULTILINE)
_LATE = 3
"""A log that begins after more than so many of its usual intervals lacks its beginning."""


def _sniff(path: Path) -> str | None:
    if path.is_file():
        return "a wandb transaction log" if wandb_log.is_log(path) else None
    segments = _segments(path)
    if not segments:
        return None
    runs = len({name for _, name, _ in segments})
    return f"{len(segments)} wandb folder(s) of {runs} run(s)"


def _segments(path: Path) -> list[tuple[str, str, Path]]:
    """Date, id and folder of each process start at or directly below ``path``, oldest first."""
    own = _FOLDER.match(path.name)
    if own and _holds_run(path):
        # Of one folder, all process starts with its id are meant.
        name = _id(path, own[2])
        beside = below(path.resolve().parent)
        return [start for start in beside if start[1] == name] or [(own[1], name, path)]
    starts = below(path)
    if not starts and (path / "wandb").is_dir():
        starts = below(path / "wandb")
    if not starts and path.is_dir():
        logs = sorted(path.glob("*.wandb"))
        starts = [("", logs[0].stem, path)] if logs else []
    return starts


def below(path: Path) -> list[tuple[str, str, Path]]:
    """Date, id and folder of each process start directly in a folder, oldest first."""
    if not path.is_dir():
        return []
    matched = ((_FOLDER.match(folder.name), folder) for folder in path.iterdir())
    return sorted(
        (match[1], _id(folder, match[2]), folder)
        for match, folder in matched
        if match and _holds_run(folder)
    )


def _id(folder: Path, named: str) -> str:
    """The id of a run: in the name of its log, else in that of its folder."""
    logs = sorted(folder.glob("run-*.wandb"))
    return logs[0].stem.removeprefix("run-") if logs else named


def _holds_run(folder: Path) -> bool:
    console = present(folder / "files" / "output.log")
    return folder.is_dir() and (console is not None or any(folder.glob("*.wandb")))


def _read(job: Job) -> Events:
    rows: dict[int, dict[str, object]] = {}
    passed: dict[str, None] = {}
    if job.address.startswith(wandb_client.SCHEME):
        _take(wandb_client.entries(job), rows, job, passed, job.shown)
        yield from series_of(rows, job, passed)
        return
    segments = [
        segment for segment in process_starts(job.source) if job.part in ((), (segment[1],))
    ]
    names = sorted({name for _, name, _ in segments})
    if len(names) > 1:
        raise StoreError(
            f"{job.source}: holds {len(names)} wandb runs; name the folder of one of them, for "
            f"example {segments[0][2].name} (its other segments are found by its id)"
        )
    starts: list[int] = []
    for _, _, folder in segments:
        own = _segment(folder, job, passed)
        if own:
            starts.append(min(own))
        for step, data in own.items():
            rows.setdefault(step, {}).update(data)
    job.facts.run = job.facts.run or (names[0] if names else "")
    if len(segments) > 1:
        begun = ", ".join(str(step) for step in starts)
        job.facts.notes["segments"] = f"{len(segments)} process starts, at steps {begun}"
    job.facts.notes.update(_late(sorted(rows)))
    yield from series_of(rows, job, passed)


def process_starts(path: Path) -> list[tuple[str, str, Path]]:
    """Date, id and folder of each process start of the runs at ``path``, oldest first.

    One log stands for its run: the folders beside its own that have its id are read, too.
    """
    if not path.is_file():
        return _segments(path)
    beside = _segments(path.parent) if _FOLDER.match(path.parent.resolve().name) else []
    same = [start for start in beside if start[1] == path.stem.removeprefix("run-")]
    return same or [("", path.stem.removeprefix("run-"), path)]


def _claim(form: Format, folder: Path, below_it: list[Path]) -> Claim:
    """The runs whose folders lie directly in a folder of a tree."""
    starts = below(folder)
    taken = {place for _, _, place in starts}
    sources = []
    for name in sorted({name for _, name, _ in starts}):
        own = [place for _, of, place in starts if of == name]
        sources.append(Source(form, folder, called(own) or name, (name,), steps=1))
    return sources, [path for path in below_it if path not in taken]


def called(folders: Sequence[Path]) -> str:
    """The name of a run, from the beginnings of its logs; empty if they do not say."""
    facts = Facts()
    for folder in folders:
        for log in sorted(folder.glob("*.wandb")):
            for entry in wandb_log.entries(log, Ledger()):
                if isinstance(entry, wandb_log.LoggedRow):
                    break
                if isinstance(entry, wandb_log.About):
                    _name(entry, facts)
        config = present(folder / "files" / "config.yaml")
        configured = _CONFIGURED.search(head(config).decode("utf-8", "replace")) if config else None
        if configured and parsed(facts.run) is None:
            facts.run = configured[1]
    return facts.run


def _late(steps: Sequence[int]) -> dict[str, str]:
    """A note, if the log begins long after a training does."""
    usual = min((b - a for a, b in pairwise(steps)), default=1)
    if not steps or steps[0] <= _LATE * usual:
        return {}
    return {
        "start": f"the log begins at step {steps[0]}, so an earlier start of this run is missing: "
        "put its folder (run-<date>-<id>, the same id) beside this one. Without it this run's "
        "baseline is not its start, and keys that only the first start logged are missing"
    }


def _segment(folder: Path, job: Job, passed: dict[str, None]) -> dict[int, dict[str, object]]:
    """Keys and values by step of one process start."""
    logs = [folder] if folder.is_file() else sorted(folder.glob("*.wandb"))
    rows: dict[int, dict[str, object]] = {}
    for log in logs:
        _take(wandb_log.entries(log, job.ledger), rows, job, passed, log.name)
    console = present(folder / "files" / "output.log")
    if console is not None:
        for step, data in console_log.steps(console, job.ledger):
            # The log rounds less than the console: it wins where it has the number.
            rows[step] = useful(data, passed) | rows.get(step, {})
    return rows


def _take(
    entries: Iterable[wandb_log.Entry],
    rows: dict[int, dict[str, object]],
    job: Job,
    passed: dict[str, None],
    where: str,
) -> None:
    """Add the history of a log to ``rows``; facts of the run go to the job."""
    for entry in entries:
        if isinstance(entry, wandb_log.About):
            _about(entry, job)
            continue
        step = step_of(entry.data)
        step = entry.step if step is None else step
        if step is None:
            job.ledger.skip("history row without a step", where)
            continue
        rows.setdefault(step, {}).update(useful(entry.data, passed))


def _name(entry: wandb_log.About, facts: Facts) -> None:
    """The run's name: what the launcher called the experiment, else what wandb shows."""
    facts.run = entry.facts.get("name") or facts.run or entry.facts.get("id", "")
    experiment = text(section(entry.config, "trainer").get("experiment_name")) or ""
    if not named_after(facts.run, facts) and not named_after(experiment, facts):
        facts.run = experiment or facts.run


def _about(entry: wandb_log.About, job: Job) -> None:
    """What a log says of its run, into the facts of the import."""
    facts = job.facts
    _name(entry, facts)
    project = entry.facts.get("project", "")
    if project:
        facts.notes["wandb project"] = project
    seed = entry.config.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        facts.seed = seed


FORMAT = Format(
    "wandb",
    "Weights & Biases folders and .wandb files",
    _sniff,
    _read,
    dict.fromkeys((gaps.LENGTHS, gaps.TEXTS), "import the framework's dump of its outputs")
    | {
        gaps.REWARDS: "import the framework's dump of its outputs",
        gaps.LOGPROBS: "with a policy per role the paper's code logs them per role; "
        "else watch it live (docs/integrations)",
    },
    scheme=wandb_client.SCHEME,
    claim=_claim,
    only_numbers=True,
)
