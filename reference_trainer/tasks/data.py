"""Rows of the data sets of the paper: DAPO-Math and DeepCoder, from a file, a folder or the hub.

Rows that cannot be used (no question, no answer, tests that are missing or cannot be read) are left
out and counted, never passed on: a problem without tests would be solved by every program.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from reference_trainer.tasks.data_files import DataError as DataError
from reference_trainer.tasks.data_files import Halves, fixed_splits, read_table
from reference_trainer.tasks.unit_tests import UnitTest

DAPO_MATH = "open-r1/DAPO-Math-17k-Processed"
DEEPCODER = "agentica-org/DeepCoder-Preview-Dataset"
AIME_2025 = "MathArena/aime_2025"

_SPLIT_SEED = 42
_MATH_TEST_SHARE = 0.1
TEST_ROWS = 1000
"""Of DeepCoder, as in the paper's code."""


@dataclass(frozen=True, slots=True)
class MathRow:
    """A mathematics problem.

    Attributes:
        id: Stable name.
        question: The problem, as it stands in the file.
        answer: The final answer.
    """

    id: str
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class CodeRow:
    """A programming problem.

    Attributes:
        id: Stable name.
        question: The problem, as it stands in the file.
        starter_code: Code that solutions must begin with, often empty.
        tests: At least one.
        prepared: The question already says what form a program must have, as in rows that the
            paper's code prepared.
    """

    id: str
    question: str
    starter_code: str
    tests: tuple[UnitTest, ...]
    prepared: bool = False


Row = TypeVar("Row", MathRow, CodeRow)


@dataclass(frozen=True, slots=True)
class Splits(Generic[Row]):
    """A data set, divided.

    Attributes:
        train: Rows to train on.
        test: Held-out rows.
        dropped: Reason to number of rows that were left out.
    """

    train: tuple[Row, ...]
    test: tuple[Row, ...]
    dropped: Mapping[str, int]

    @property
    def summary(self) -> str:
        """How many rows there are, and how many were left out and why."""
        text = f"{len(self.train)} rows to train on, {len(self.test)} to test on"
        reasons = ", ".join(f"{count} with {reason}" for reason, count in self.dropped.items())
        return f"{text}; left out: {reasons}" if reasons else text


class _UnusableError(Exception):
    """A row is left out; the message is the reason counted."""


def load_dapo_math(
    source: str | Path = DAPO_MATH, *, config: str = "en", validation: str | Path = ""
) -> Splits[MathRow]:
    """DAPO-Math: a random tenth, drawn with seed 42, is the test split.

    Args:
        source: A parquet or jsonl file; a folder of them, or of folders named like configurations;
            or an id on the hub. Files ``train`` and ``test`` in a folder are the splits as they
            are.
        config: Configuration of a hub data set.
        validation: Such a source whose rows replace the test split, e.g. ``AIME_2025``.

    Raises:
        DataError: If there is nothing to read, or no row of it can be used.
    """
    halves = fixed_splits(source)
    if halves is None:
        parts = read_table(source, config).train_test_split(
            test_size=_MATH_TEST_SHARE, seed=_SPLIT_SEED
        )
        halves = Halves(parts["train"], parts["test"])
    splits = _parsed(source, halves, _MATH)
    if not validation:
        return splits
    rows = Halves(halves.train.select([]), read_table(validation, None), named=True)
    other = _parsed(validation, rows, _MATH)
    dropped = Counter(splits.dropped) + Counter(other.dropped)
    return Splits(splits.train, other.test, dropped)


def load_deepcoder(
    source: str | Path = DEEPCODER,
    *,
    subset: str = "primeintellect",
    test_rows: int = TEST_ROWS,
) -> Splits[CodeRow]:
    """DeepCoder: rows shuffled with seed 42, of which the first thousand are the test split.

    Unusable rows are left out after the shuffle, so that they do not change the order of the
    others.

    Args:
        source: As for :func:`load_dapo_math`; raw rows (``problem``, ``tests``) or prepared ones
            (``question``, ``ground_truth``).
        subset: Configuration of a hub data set.
        test_rows: Size of the test split.

    Raises:
        DataError: As for :func:`load_dapo_math`, or if there are no more rows than ``test_rows``.
    """
    halves = fixed_splits(source)
    if halves is None:
        table = read_table(source, subset)
        if len(table) <= test_rows:
            raise DataError(
                f"{source} has {len(table)} rows, which leaves none to train on after {test_rows} "
                "test rows; set a smaller test_rows (task.test_rows)"
            )
        table = table.shuffle(seed=_SPLIT_SEED)
        test, train = table.select(range(test_rows)), table.select(range(test_rows, len(table)))
        halves = Halves(train, test)
    return _parsed(source, halves, _CODE)


@dataclass(frozen=True, slots=True)
class _Form(Generic[Row]):
    """How rows of a kind are read, and which columns that takes, in words."""

    parse: Callable[[Mapping[str, Any]], Row]
    columns: str


def _parsed(source: str | Path, halves: Halves, form: _Form[Row]) -> Splits[Row]:
    dropped: Counter[str] = Counter()
    tables: dict[str, Any] = {"train": halves.train, "test": halves.test}
    rows = {name: tuple(_usable(part, form.parse, dropped)) for name, part in tables.items()}
    for name, table in tables.items():
        if len(table) and not rows[name]:
            counts = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
            present = sorted(set(table.column_names) - {"row_number"})
            raise DataError(
                f"no row of the {name} split of {source} can be used ({counts}). Expected are the "
                f"columns {form.columns}; it has {present}. "
                "Rename its columns, or give another source in task.source"
            )
        if halves.named:
            rows[name] = tuple(replace(row, id=f"{name}/{row.id}") for row in rows[name])
    return Splits(rows["train"], rows["test"], dropped)


def _usable(
    table: Any, parse: Callable[[Mapping[str, Any]], Row], dropped: Counter[str]
) -> Iterator[Row]:
    for row in table:
        try:
            yield parse(row)
        except _UnusableError as reason:
            dropped[str(reason)] += 1


def _text(row: Mapping[str, Any], *columns: str) -> str:
    """The first of ``columns`` with text in it, else an empty string."""
    for column in columns:
        value = row.get(column)
        if isinstance(value, (str, int, float)) and str(value).strip():
            return str(value).strip()
    return ""


def _question(row: Mapping[str, Any], *columns: str) -> str:
    """The first of ``columns`` with text in it, with the blanks around it, else an empty string."""
    texts = (row.get(column) for column in columns)
    return next((text for text in texts if isinstance(text, str) and text.strip()), "")


def _math_row(row: Mapping[str, Any]) -> MathRow:
    question = _question(row, "question", "prompt", "problem")
    answer = _text(row, "final_answer", "solution", "answer")
    model = row.get("reward_model")
    if not answer and isinstance(model, Mapping):
        answer = _text(model, "ground_truth")
    if not question:
        raise _UnusableError("no question")
    if not answer:
        raise _UnusableError("no answer")
    extra = row.get("extra_info")
    name = _text(extra, "index") if isinstance(extra, Mapping) else ""
    return MathRow(name or f"dapo_{row['row_number']}", question, answer)


def code_row(row: Mapping[str, Any]) -> CodeRow:
    """A row of DeepCoder, with its number in ``row_number``."""
    question = _question(row, "question", "problem")
    if not question:
        raise _UnusableError("no question")
    tests = _decoded(row.get("ground_truth") or row.get("tests"))
    metadata = _decoded(row.get("metadata") or "{}")
    function = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    starter = row.get("starter_code")
    return CodeRow(
        _text(row, "uid") or f"deepcoder_{row['row_number']}",
        question,
        starter if isinstance(starter, str) else "",
        tuple(_unit_test(test, function) for test in _listed(tests)),
        prepared=bool(_text(row, "question")) and "### Format:" in question,
    )


def _decoded(value: Any) -> Any:
    """Data from JSON text (twice encoded in a few rows) or from a Python literal."""
    for _ in range(2):
        if not isinstance(value, str):
            break
        if not value.strip():
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            try:
                value = ast.literal_eval(value)
            except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
                raise _UnusableError("tests cannot be read") from error
    return value


def _listed(tests: Any) -> list[Mapping[str, Any]]:
    """One mapping per test; TACO rows hold parallel lists instead."""
    if isinstance(tests, Mapping) and {"inputs", "outputs"} <= tests.keys():
        inputs, outputs = tests["inputs"], tests["outputs"]
        if not isinstance(inputs, list) or not isinstance(outputs, list):
            raise _UnusableError("malformed tests")
        if len(inputs) != len(outputs):
            raise _UnusableError("malformed tests")
        name = tests.get("fn_name")
        tests = [
            {"input": given, "output": wanted, "fn_name": name}
            for given, wanted in zip(inputs, outputs, strict=True)
        ]
    if isinstance(tests, Mapping):
        tests = [tests]
    if not tests:
        raise _UnusableError("no tests")
    if not isinstance(tests, list) or not all(isinstance(test, Mapping) for test in tests):
        raise _UnusableError("malformed tests")
    return tests


def _unit_test(test: Mapping[str, Any], row_function: Any) -> UnitTest:
    if test.get("input") is None or test.get("output") is None:
        raise _UnusableError("malformed tests")
    kind = test.get("testtype") or test.get("type") or ""
    metadata = test.get("metadata")
    named = metadata.get("func_name") if isinstance(metadata, Mapping) else None
    function = test.get("fn_name") or named or row_function
    if kind in ("functional", "function_call") or (not kind and test.get("fn_name")):
        if not isinstance(function, str) or not function.isidentifier():
            raise _UnusableError("functional tests without a function name")
        arguments = _arguments(test["input"])
        # LiveCodeBench writes values as JSON text. Elsewhere a text is the very text to return.
        expected = _value(test["output"]) if kind == "functional" else test["output"]
        return UnitTest("functional", function=function, arguments=arguments, expected=expected)
    if kind not in ("", "stdin", "stdin_stdout"):
        raise _UnusableError(f"tests of unknown type {str(kind)[:40]!r}")
    return UnitTest("stdin_stdout", _stream(test["input"]), _stream(test["output"]))


def _stream(value: Any) -> str:
    """Text of a stream; some rows hold a list of lines."""
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return str(value)


def _arguments(value: Any) -> tuple[Any, ...]:
    """Arguments: a list of them, or text with one JSON value per line."""
    if isinstance(value, list):
        return tuple(value)
    return tuple(_value(line) for line in str(value).split("\n") if line.strip())


def _value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise _UnusableError("malformed tests") from error


_MATH = _Form(
    _math_row,
    "question, prompt or problem, and final_answer, solution, answer or reward_model.ground_truth",
)
_CODE = _Form(code_row, "question or problem, and ground_truth or tests")
