"""Write a task's problems as verl's Parquet files, ``train.parquet`` and ``validation.parquet``."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from reference_trainer.config import from_mapping
from reference_trainer.tasks import Split, Task
from reference_trainer.tasks.data import DataError
from reference_trainer.tasks.datasets import (
    DapoMathSource,
    DapoMathTask,
    DeepCoderSource,
    DeepCoderTask,
)
from roledrift import RoleDriftError
from verl_recipe.rows import row_of

_SPLITS: tuple[Split, ...] = ("train", "validation")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m verl_recipe.prepare", description=__doc__)
    parser.add_argument("task", choices=("dapo_math", "deepcoder", "math", "code"))
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--source", default="", help="file, folder or hub id; default: the hub's")
    parser.add_argument("--subset", default="", help="configuration of a hub data set")
    parser.add_argument(
        "--validation", default="", help="dapo_math: validate on these rows, not on a tenth"
    )
    parser.add_argument("--test-rows", type=int, default=0, help="deepcoder: rows to validate on")
    parser.add_argument(
        "--released", action="store_true", help="pose problems as the paper's code does"
    )
    parser.add_argument(
        "--rows", type=int, nargs=2, default=(2048, 256), metavar=("TRAIN", "VALIDATION"),
        help="math and code, which are generated: how many rows",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    try:
        task = load_task(options)
        options.out.mkdir(parents=True, exist_ok=True)
        for split, generated in zip(_SPLITS, options.rows, strict=True):
            rows, dropped = rows_of(task, split, generated=generated)
            file = options.out / f"{split}.parquet"
            pq.write_table(pa.Table.from_pylist(rows), file)
            lost = f"; left out: {dropped} whose tests cannot be written as JSON" if dropped else ""
            print(f"{file}: {len(rows)} rows{lost}")
    except (RoleDriftError, OSError) as error:
        # Keys of a configuration are options here.
        message = re.sub(r"\btask\.(\w+)", lambda key: f"--{key[1].replace('_', '-')}", str(error))
        print(f"error: {message}", file=sys.stderr)
        return 2
    return 0


def load_task(options: argparse.Namespace) -> Task:
    """The task that the command line names, with its rows.

    Raises:
        SettingsError: If an option is not one of the task's.
        DataError: If its rows cannot be read.
    """
    given = {"source": options.source, "subset": options.subset}
    given |= {"validation": options.validation, "test_rows": options.test_rows}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value}
    # The path keeps the configuration from asking for a tiny model's task; no model is loaded.
    values = {"task": {"name": options.task, **settings}, "model": {"path": "none"}}
    task = from_mapping(values).task
    if isinstance(task, DapoMathSource):
        return DapoMathTask(task.load().splits, released=options.released)
    if isinstance(task, DeepCoderSource):
        return task.load(released=options.released)
    return task


def rows_of(task: Task, split: Split, *, generated: int) -> tuple[list[dict[str, Any]], int]:
    """All rows of a split, and how many had to be left out.

    Args:
        task: With its rows, or one that generates them.
        split: Which.
        generated: Number of rows of a task that generates them.

    Raises:
        DataError: If there is no row.
    """
    rows, dropped = [], 0
    for index, tests in enumerate(_tests(task, split, generated)):
        problem = task.problem(split, index)
        try:
            rows.append(row_of(problem, index, source=task.name, split=split, tests=tests))
        except (ValueError, TypeError):
            dropped += 1
    if not rows:
        raise DataError(f"the {split} split of {task.name} has no row to write")
    return rows, dropped


def _tests(task: Task, split: Split, generated: int) -> Iterator[tuple[Any, ...]]:
    """Per row the tests that programs are graded by; none where answers are compared."""
    if isinstance(task, DapoMathTask | DeepCoderTask):
        for row in task.splits.train if split == "train" else task.splits.test:
            yield getattr(row, "tests", ())
    else:
        yield from [()] * generated


if __name__ == "__main__":
    sys.exit(main())
