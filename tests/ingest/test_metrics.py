"""Any file of logged metrics."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from roledrift.ingest.importing import import_run, job_for
from roledrift.store.reader import open_run

ROWS = [
    {"step": n, "reward": 0.1 * n, "entropy": 0.5, "completions/mean_length": 100 + n}
    for n in range(1, 9)
]


def _jsonl(path: Path) -> Path:
    file = path / "log.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return file


def _nested(path: Path) -> Path:
    file = path / "log.jsonl"
    rows = ({"step": row["step"], "metrics": row} for row in ROWS)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def _list(path: Path) -> Path:
    file = path / "history.json"
    file.write_text(json.dumps(ROWS))
    return file


def _state(path: Path) -> Path:
    file = path / "my_state.json"
    file.write_text(json.dumps({"log_history": ROWS, "global_step": 8}))
    return file


def _columns(path: Path) -> Path:
    file = path / "history.json"
    file.write_text(json.dumps({key: [row[key] for row in ROWS] for key in ROWS[0]}))
    return file


def _csv(path: Path, delimiter: str = ",", prefix: str = "") -> Path:
    file = path / "log.csv"
    with file.open("w", newline="") as out:
        names = [prefix + key if key != "step" else key for key in ROWS[0]]
        writer = csv.writer(out, delimiter=delimiter)
        writer.writerow(names)
        for row in ROWS:
            cells = [str(value) for value in row.values()]
            writer.writerow([c.replace(".", ",") if delimiter == ";" else c for c in cells])
    return file


def _semicolons(path: Path) -> Path:
    return _csv(path, ";")


def _exported(path: Path) -> Path:
    return _csv(path, prefix="run-1 - ")


def _console(path: Path) -> Path:
    file = path / "train.log"
    lines = ["loading"] + [f" 12%|#  | {row}" for row in ROWS]
    file.write_text("\n".join(lines))
    return file


@pytest.mark.parametrize(
    "write",
    [_jsonl, _nested, _list, _state, _columns, _csv, _semicolons, _exported, _console],
)
def test_rows_are_understood_wherever_they_are(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    source = write(tmp_path)
    done = import_run(sniff(source), job_for(source), tmp_path / "run")
    assert (done.format, done.tally.steps) == ("metrics", 8)
    record = open_run(tmp_path / "run").steps()[3]
    assert record.totals["reward"] == pytest.approx(0.4)
    # Of one role, what is of all roles together is that role's.
    assert record.mean("policy", "length") == record.mean("*", "length") == 104


def test_a_console_without_steps_counts_its_dictionaries(tmp_path: Path) -> None:
    file = tmp_path / "train.log"
    lines = [f"{{'loss': 0.0, 'reward': {n / 10}, 'grad_norm': nan}}" for n in range(5)]
    file.write_text("\n".join([*lines, "{'train_runtime': 3.0, 'train_loss': 0.1}"]))
    done = import_run(sniff(file), job_for(file), None)
    assert (done.tally.first, done.tally.last) == (1, 5)
    assert "counted" in done.notes["steps"]


@pytest.mark.parametrize("text", ["", "hello world\n", "\x00\x01\x02", "{", "[1, 2, 3]"])
def test_what_holds_no_rows_is_not_recognised(text: str, tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.json", "a.csv", "a.log"):
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(StoreError):
            import_run(sniff(file), job_for(file), None)


def test_a_log_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    file = _jsonl(tmp_path)
    file.write_bytes(file.read_bytes()[:-20])
    done = import_run(sniff(file), job_for(file), None)
    assert done.tally.steps == 7
    assert done.odd["broken or half-written JSON"] == 1
