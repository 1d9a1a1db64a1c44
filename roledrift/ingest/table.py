"""Any JSON lines, CSV or Parquet with a mapping file that says which column is what.

::

    [columns]                 # what a row of the library is made of = where it is in the source
    step = "iteration"        # a dotted path for nested JSON
    role = "meta.agent"
    text = "completion"
    tokens = "n_tokens"
    truncated = "finish_reason"

    [values]
    truncated = ["length"]    # what counts as true

    [constants]
    role = "generator"        # for every row, instead of a column

    [totals]
    val_accuracy = "val_acc"  # numbers of the whole step: the last value of the step counts
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from roledrift.config import near
from roledrift.errors import ConfigError, StoreError
from roledrift.ingest import gaps
from roledrift.ingest.form import Format, Job
from roledrift.ingest.grade import answer_text, answers, is_right
from roledrift.ingest.lines import csv_rows, documents
from roledrift.ingest.rows import Events, Pair, Series, SpanRow, floats, pair
from roledrift.ingest.unpacking import plain
from roledrift.ingest.values import at, has, integer, number, text, truth
from roledrift.spans import Kind
from roledrift.store.regular import opened

_WHOLES = ("slot", "turn", "tokens", "scored", "nonfinite")
_NUMBERS = ("reward", "advantage", "nll", "entropy")
_NAMES = ("prompt", "episode", "group", "text", "prompt_text")
_LISTS = (
    "logp",
    "old_logp",
    "rollout_logp",
    "reference_logp",
    "after_logp",
    "token_entropy",
    "mask",
)
COLUMNS = ("step", "role", *_WHOLES, *_NUMBERS, *_NAMES, "truncated", "answer", *_LISTS)
"""What ``[columns]`` can name. Per-token columns are lists of numbers."""

_SETTINGS = ("temperature", "rollout_temperature", "steps_between")
_SECTIONS = ("columns", "values", "constants", "totals", "settings", "format", "files")
_PAIRS: tuple[tuple[Kind, str, str], ...] = (
    ("rollout", "logp", "rollout_logp"),
    ("old", "logp", "old_logp"),
    ("reference", "logp", "reference_logp"),
    ("update", "after_logp", "logp"),
)
_SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
}
_BATCH = 2048
_BUFFER = 1 << 20
"""Bytes of a Parquet column that are read at once; without it, all of a row group are held."""
_PATIENCE = 10_000
"""Rows after which a table without a step is given up."""
_NAMES_KEPT = 200


def load_mapping(path: Path) -> dict[str, Any]:
    """The mapping file.

    Raises:
        ConfigError: If it cannot be read or is wrong, with every problem.
    """
    import tomllib

    try:
        body = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); give a file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    problems = list(_problems(body))
    if problems:
        raise ConfigError(f"{path}: " + "; ".join(problems))
    return body


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(body, _SECTIONS, "")
    if body.get("format", "csv") not in ("jsonl", "csv", "parquet"):
        yield f"format {body['format']!r}: say jsonl, csv or parquet"
    sections = {}
    for name in ("columns", "values", "constants", "totals", "settings"):
        section = body.get(name, {})
        if not isinstance(section, dict):
            yield f"{name}: needs a section of keys"
            section = {}
        sections[name] = section
    for name in ("columns", "totals"):
        for key, value in sections[name].items():
            if not isinstance(value, str):
                yield f"{name}.{key}: needs the name of a column, got {value!r}"
    yield from _unknown(sections["columns"], COLUMNS, "columns.")
    yield from _unknown(sections["constants"], COLUMNS, "constants.")
    yield from _unknown(sections["settings"], _SETTINGS, "settings.")
    if "step" not in sections["columns"]:
        yield "columns.step: is needed; name the column that holds the optimizer iteration"
    if not sections["totals"] and not {"role"} & {*sections["columns"], *sections["constants"]}:
        yield "columns.role: is needed (or constants.role, if all rows are one role's)"


def _unknown(body: Mapping[str, Any], known: tuple[str, ...], where: str) -> Iterator[str]:
    for key in body:
        if key not in known:
            yield f"{where}{key}: unknown{near(key, known)}"


def _sniff(path: Path) -> str | None:
    del path  # a table says nothing about itself: it is read only with a mapping
    return None


def _read(job: Job) -> Events:
    if job.mapping is None:
        raise ConfigError("a table needs --mapping FILE that says which column is what")
    files = _files(job)
    plan = _Plan(job.mapping)
    for file in files:
        for where, row in _rows(file, job):
            if plan.unseen:
                plan.look(row)
            yield from plan.events(row, where, job)
    plan.complain(job, headed=all(_kind(file, job) != "jsonl" for file in files))
    job.facts.host = "table"


def _files(job: Job) -> list[Path]:
    source = job.source
    if source.is_file():
        return [source]
    pattern = (job.mapping or {}).get("files")
    files = (
        sorted(source.glob(str(pattern)))
        if pattern
        else [file for file in sorted(source.iterdir()) if _kind(file, job)]
    )
    if not files:
        raise StoreError(f"{source}: no file here fits {pattern or sorted(_SUFFIXES)}")
    return files


def _kind(file: Path, job: Job) -> str | None:
    named = (job.mapping or {}).get("format")
    return str(named) if named else _SUFFIXES.get(Path(plain(file.name)).suffix)


def _rows(file: Path, job: Job) -> Iterable[tuple[str, Mapping[str, Any]]]:
    kind = _kind(file, job)
    if kind == "jsonl":
        return documents(file, job.ledger)
    if kind == "csv":
        return ((where, row) for where, row, _ in csv_rows(file, job.ledger))
    if kind == "parquet":
        return _parquet(file, job)
    raise StoreError(
        f"{file}: no known table; name its format (jsonl, csv, parquet) in the mapping"
    )


def _parquet(file: Path, job: Job) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        seen = 0
        table = pq.ParquetFile(opened(file), buffer_size=_BUFFER, pre_buffer=False)
        for batch in table.iter_batches(_BATCH):
            for row in batch.to_pylist():
                seen += 1
                yield f"{file.name}:{seen}", row
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        job.ledger.skip(f"unreadable parquet ({type(error).__name__})", file.name)


def _paths(row: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Names of columns, dotted where they are nested; two levels are enough for a hint."""
    for key, value in row.items():
        if isinstance(key, str):
            yield above + key
            if isinstance(value, Mapping) and not above:
                yield from _paths(value, f"{key}.")


class _Plan:
    """The mapping, ready to be applied to rows."""

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        self._columns: dict[str, str] = mapping.get("columns", {})
        self._constants: dict[str, Any] = mapping.get("constants", {})
        self._totals: dict[str, str] = mapping.get("totals", {})
        self._settings: dict[str, Any] = mapping.get("settings", {})
        true = mapping.get("values", {})
        self._true = {
            name: set(map(str, value if isinstance(value, list) else [value]))
            for name, value in true.items()
        }
        self.unseen = {
            f"{section}.{name}": column
            for section, named in (("columns", self._columns), ("totals", self._totals))
            for name, column in named.items()
        }
        mapped = {*self._columns, *self._constants}
        self._counted = [name for name in (*_WHOLES, *_NUMBERS) if name in mapped]
        self._texts = [name for name in _NAMES if name in mapped]
        self._seen_names: dict[str, None] = {}
        self._looked = 0
        self._spans = "role" in self._columns or "role" in self._constants

    def look(self, row: Mapping[str, Any]) -> None:
        """Strike out the columns that ``row`` has; refuse a table without steps early on.

        Raises:
            ConfigError: If none of the first rows has the column of the step.
        """
        for name in [name for name, column in self.unseen.items() if has(row, column)]:
            del self.unseen[name]
        self._looked += 1
        if len(self._seen_names) < _NAMES_KEPT:
            self._seen_names.update(dict.fromkeys(_paths(row)))
        if self._looked == _PATIENCE and "columns.step" in self.unseen:
            raise ConfigError(self._complaint())

    def complain(self, job: Job, *, headed: bool) -> None:
        """Name the mapped columns that no row has had: a number would be silently absent.

        Args:
            job: Its ledger counts what is not refused.
            headed: Whether the tables have headers, so that a column that is not there is a
                mistake. In JSON lines a key may simply have had no value in this run.

        Raises:
            ConfigError: With every such column and the nearest name there is.
        """
        needed = self.unseen.keys() & {"columns.step", "columns.role"}
        if self._looked and (needed or (self.unseen and headed)):
            raise ConfigError(f"{job.source}: {self._complaint()}")
        for name, column in self.unseen.items() if self._looked else ():
            job.ledger.skip(f"mapped column that no row has: {name} = {column!r}", job.source.name)

    def _complaint(self) -> str:
        names = list(self._seen_names)
        complaints = []
        for name, column in self.unseen.items():
            close = get_close_matches(column, names, n=1)
            hint = f", did you mean {close[0]!r}?" if close else ""
            complaints.append(f"the mapping's {name} = {column!r} is not a column{hint}")
        return f"{'; '.join(complaints)} (there are {', '.join(names[:20])})"

    def events(self, row: Mapping[str, Any], where: str, job: Job) -> Iterator[SpanRow | Series]:
        """The span of a row, and its numbers of the whole step."""
        step = integer(self._get(row, "step"))
        if step is None:
            job.ledger.skip("row without a step", where)
            return
        totals = {
            name: value
            for name, column in self._totals.items()
            if (value := number(at(row, column))) is not None
        }
        if totals:
            yield Series(step, totals=totals)
        name = self._get(row, "role") if self._spans else None
        if name is None or name == "":
            if self._spans and not totals:
                job.ledger.skip("row without a role", where, step=step)
            return
        yield self._span(row, step, str(name), where, job)

    def _span(self, row: Mapping[str, Any], step: int, name: str, where: str, job: Job) -> SpanRow:
        prompt = text(self._get(row, "prompt_text")) or ""
        role, slot = job.roles.resolve(name, prompt)
        span = SpanRow(step=step, role=role, slot=slot, truncated=self._truncated(row))
        for column in self._counted:
            raw = self._get(row, column)
            value = integer(raw) if column in _WHOLES else number(raw)
            if value is None and raw not in (None, ""):
                job.ledger.skip(f"{column} is not a number", where, step=step)
            if value is not None and not (column == "tokens" and value < 0):
                setattr(span, column, value)
        for column in self._texts:
            raw = self._get(row, column)
            if raw is not None and not isinstance(raw, list | dict):
                setattr(span, column, str(raw))
        self._per_token(row, span, where, job)
        answer = answer_text(self._get(row, "answer"))
        solves = answers(role)
        if answer is not None and span.text is not None and solves:
            span.shares = {"correct": is_right(span.text, answer)}
        return span

    def _get(self, row: Mapping[str, Any], name: str) -> Any:
        column = self._columns.get(name)
        return self._constants.get(name) if column is None else at(row, column)

    def _truncated(self, row: Mapping[str, Any]) -> bool | None:
        raw = self._get(row, "truncated")
        if raw is None or raw == "":
            return None
        return str(raw) in self._true["truncated"] if "truncated" in self._true else truth(raw)

    def _per_token(self, row: Mapping[str, Any], span: SpanRow, where: str, job: Job) -> None:
        lists = {}
        for name in _LISTS:
            values = floats(self._get(row, name)) if name in self._columns else None
            if values is not None:
                lists[name] = values
        if not lists:
            return
        sizes = {len(list_) for list_ in lists.values()}
        if len(sizes) > 1:
            job.ledger.skip("per-token lists of different lengths", where, step=span.step)
            return
        mask = lists.get("mask", np.ones(sizes.pop())) != 0
        kept = {name: list_[mask] for name, list_ in lists.items()}
        if span.tokens is None:
            span.tokens = int(mask.sum())
        if "logp" in kept and span.nll is None:
            good = np.isfinite(kept["logp"])
            if "token_entropy" in kept:
                good &= np.isfinite(kept["token_entropy"])
                span.entropy = float(kept["token_entropy"][good].sum())
            span.scored, span.nonfinite = int(good.sum()), int((~good).sum())
            span.nll = float(-kept["logp"][good].sum())
        span.pairs = tuple(self._pairs(kept))

    def _pairs(self, kept: Mapping[str, np.ndarray[Any, Any]]) -> Iterator[Pair]:
        own = number(self._settings.get("temperature"))
        steps = integer(self._settings.get("steps_between"))
        for kind, a, b in _PAIRS:
            if a in kept and b in kept:
                other = (
                    number(self._settings.get("rollout_temperature")) if kind == "rollout" else own
                )
                yield pair(kind, kept[a], kept[b], temperatures=(own, other), steps_between=steps)


_MAP = "map its column, if there is one"
FORMAT = Format(
    "table",
    "JSON lines, CSV or Parquet with a mapping file",
    _sniff,
    _read,
    {quantity.name: _MAP for quantity in gaps.QUANTITIES},
)
