"""TRL's logs: ``completions/completions_<step>.parquet`` and ``trainer_state.json``.

The completions hold texts, rewards per reward function and advantages of the last batch before each
log; no token counts. Roles are there if a reward function logged them (``log_extra("role", ...)``)
or the data set had such a column; ``--roles`` can tell roles by their prompts otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roledrift.errors import StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.grade import answer_text, answers, is_right
from roledrift.ingest.history import History
from roledrift.ingest.lines import document
from roledrift.ingest.rows import Events, Series, SpanRow, StepDone
from roledrift.ingest.values import content, integer, number, prompt_of, rows, text
from roledrift.store.regular import opened

_COMPLETIONS = re.compile(r"completions_(\d{1,12})\.parquet\Z")
_FUNCTION = re.compile(r"rewards/(.+)/mean\Z")
_STATE = "trainer_state.json"
_ROLE_COLUMNS = ("role", "agent", "agent_id", "agent_name")
_KNOWN = {"step", "prompt", "completion", "advantage", "slot", "turn", "episode", "answer"}
_BATCH = 512


def _sniff(path: Path) -> str | None:
    if path.is_file():
        return "TRL completions" if _COMPLETIONS.match(path.name) else _state_reason(path)
    parts = []
    files = _completions(path)
    if files:
        parts.append(f"{len(files)} completions_*.parquet")
    state = _state(path)
    if state is not None and _state_reason(state):
        parts.append(f"{state.name} with a log history")
    return " and ".join(parts) or None


def _state_reason(path: Path) -> str | None:
    from roledrift.ingest.lines import head

    if path.name != _STATE or b'"log_history"' not in head(path, 1 << 22):
        return None
    return "trainer_state.json with a log history"


def _completions(path: Path) -> dict[int, Path]:
    if path.is_file():
        match = _COMPLETIONS.match(path.name)
        return {int(match[1]): path} if match else {}
    folders = (path, path / "completions")
    files = (file for folder in folders for file in folder.glob("completions_*.parquet"))
    return {int(match[1]): file for file in files if (match := _COMPLETIONS.match(file.name))}


def _state(path: Path) -> Path | None:
    """The trainer state of the latest checkpoint, or the one in the folder itself."""
    if path.is_file():
        return path if path.name == _STATE else None
    own = [path / _STATE] if (path / _STATE).is_file() else []
    saved = [
        (int(match[1]), file)
        for file in path.glob(f"checkpoint-*/{_STATE}")
        if (match := re.match(r"checkpoint-(\d{1,12})\Z", file.parent.name))
    ]
    return own[0] if own else (max(saved)[1] if saved else None)


def _read(job: Job) -> Events:
    job.facts.host = "trl"
    files = _completions(job.source)
    logged, functions = _history(job)
    if files:
        job.facts.notes["outputs"] = (
            "TRL keeps the last batch before each log; texts without token counts"
        )
    for step in sorted(set(files) | set(logged)):
        if step in logged:
            yield logged[step]
        if step in files:
            yield from _spans(files[step], step, functions, job)
        yield StepDone(step)
    if files:
        job.facts.slots.clear()


def _history(job: Job) -> tuple[dict[int, Series], frozenset[str]]:
    """Logged numbers by step, and the names of the reward functions."""
    state = _state(job.source)
    body = document(state, job.ledger) if state else None
    if body is None:
        return {}, frozenset()
    history = History(job)
    functions: set[str] = set()
    for row in rows(body.get("log_history")):
        functions |= {match[1] for key in row if (match := _FUNCTION.match(key))}
        data = {key: value for key, value in row.items() if key not in ("step", "epoch")}
        history.add(integer(row.get("step")), data, _STATE)
    try:
        by_step = {series.step: series for series in history.events() if isinstance(series, Series)}
    except StoreError as error:
        if not _completions(job.source):
            raise
        job.ledger.skip("trainer state without metrics of this training", error)
        by_step = {}
    return by_step, frozenset(functions)


def _spans(file: Path, step: int, functions: frozenset[str], job: Job) -> Iterator[SpanRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # A bit at a time: as it comes, a whole row group is held.
        table = pq.ParquetFile(opened(file), buffer_size=1 << 20, pre_buffer=False)
        names = [str(name) for name in table.schema_arrow.names]
        counted: dict[str, int] = {}
        columns = _columns(names, table.schema_arrow, functions)
        for batch in table.iter_batches(_BATCH):
            for row in batch.to_pylist():
                yield _span(row, step, columns, counted, job)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        job.ledger.skip(f"unreadable parquet ({type(error).__name__})", file.name, step=step)


def _columns(
    names: list[str], schema: Any, functions: frozenset[str]
) -> tuple[str | None, list[str]]:
    """The column that holds the role, and those of reward functions.

    Without a log that names the functions, they are the columns of numbers that nobody knows.
    """
    import pyarrow as pa

    role = next((name for name in _ROLE_COLUMNS if name in names), None)
    if functions:
        return role, [name for name in names if name in functions]
    rewards = [
        name
        for name in names
        if name not in _KNOWN
        and name != role
        and (pa.types.is_floating(schema.field(name).type) or name.endswith("reward"))
    ]
    return role, rewards


def _span(
    row: dict[str, Any],
    step: int,
    columns: tuple[str | None, list[str]],
    counted: dict[str, int],
    job: Job,
) -> SpanRow:
    role_column, rewards = columns
    written = text(row.get("completion"))
    if written is None:
        written = "\n".join(
            message
            for written_message in rows(row.get("completion"))
            if (message := content(written_message.get("content")))
        )
    prompt = prompt_of(row.get("prompt"))
    name = str(row.get(role_column) or "") if role_column else "policy"
    if not name:
        job.ledger.skip("completion without a role", f"completions of step {step}", step=step)
    role, slot = job.roles.resolve(name or "unknown", prompt)
    slot_of_row = integer(row.get("slot"))
    values = [value for column in rewards if (value := number(row.get(column))) is not None]
    shares = {}
    truth = answer_text(row.get("answer"))
    if truth is not None and answers(role):
        shares["correct"] = is_right(written, truth)
    counted[prompt] = counted.get(prompt, -1) + 1
    return SpanRow(
        step=step,
        role=role,
        slot=slot if slot_of_row is None else slot_of_row,
        turn=integer(row.get("turn")),
        prompt=prompt[:200],
        # Rows of one prompt are its generations; nothing says which roles belong together.
        episode=f"{prompt[:200]}|{counted[prompt]}",
        group=prompt,
        # Without weights in the log, several reward functions count as their plain sum.
        reward=sum(values) if values else None,
        advantage=number(row.get("advantage")),
        text=written,
        prompt_text=prompt,
        shares=shares,
    )


_CALLBACK = "measured live by RoleDriftCallback (docs/integrations/trl.md)"
FORMAT = Format(
    "trl",
    "TRL completions and trainer state",
    _sniff,
    _read,
    {
        gaps.TEXTS: "log_completions=True, and log_extra('role', ...) in a reward function",
        gaps.REWARDS: "log_completions=True, and log_extra('role', ...) in a reward function",
        gaps.LENGTHS: _CALLBACK,
        gaps.LOGPROBS: _CALLBACK,
        gaps.ENTROPY: _CALLBACK,
    },
)
