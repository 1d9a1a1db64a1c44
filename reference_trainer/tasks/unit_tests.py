"""Grades programs by unit tests, in the two forms that the code data sets have.

A program passes a test if its *output* is right; whether it is, is decided here, in the caller's
process, which alone knows what is expected. A program that prints a verdict prints a wrong answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from reference_trainer.tasks.sandbox import (
    Limits,
    Sandbox,
    default_sandbox,
    run_functional,
)

_STARRED = (
    *("bisect", "collections", "copy", "datetime", "functools", "heapq", "itertools", "math"),
    *("operator", "random", "re", "statistics", "string", "typing"),
)
CUSTOMARY_IMPORTS = "\n".join(
    [
        *(f"from {module} import *" for module in _STARRED),
        *(f"import {module}" for module in (*_STARRED, "json", "sys")),
        "from builtins import *",
    ]
)
"""Names that programs for these data sets take for granted, as LiveCodeBench's grader does."""

_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_NUMBER_CHARS = 60


@dataclass(frozen=True, slots=True)
class UnitTest:
    """One test.

    Attributes:
        kind: ``stdin_stdout``: a script reads ``input`` and prints ``output``. ``functional``: a
            function is called with ``arguments`` and must return ``expected``.
        input: Standard input.
        output: Expected standard output.
        function: Name of the function.
        arguments: Its arguments.
        expected: What it must return.
    """

    kind: Literal["stdin_stdout", "functional"]
    input: str = ""
    output: str = ""
    function: str = ""
    arguments: tuple[Any, ...] = ()
    expected: Any = None


def last_code_block(text: str) -> str | None:
    """Content of the last fenced block of a text, of any language; None if there is none."""
    blocks = _FENCE.findall(text)
    return str(blocks[-1]) if blocks else None


def passes_tests(
    code: str,
    tests: Sequence[UnitTest],
    *,
    limits: Limits | None = None,
    total_seconds: float | None = None,
    sandbox: Sandbox | None = None,
) -> bool:
    """Whether a program passes every test, each in a fresh process after :data:`CUSTOMARY_IMPORTS`.

    Args:
        code: The program.
        tests: The tests; a program without tests passes nothing. None is run after a failure.
        limits: Limits of each test.
        total_seconds: Limit for all tests together; None for ``min(4 * tests + 5, 120)``. Tests
            that are not reached count as failed.
        sandbox: Where to run; None for the process's own.
    """
    limits = limits or Limits()
    sandbox = sandbox or default_sandbox()
    left = min(4.0 * len(tests) + 5.0, 120.0) if total_seconds is None else total_seconds
    for test in tests:
        if left <= 0.0:
            return False
        allowed = replace(limits, seconds=min(limits.seconds, left))
        passed, seconds = _run_test(code, test, allowed, sandbox)
        if not passed:
            return False
        left -= seconds
    return bool(tests)


def _run_test(code: str, test: UnitTest, limits: Limits, sandbox: Sandbox) -> tuple[bool, float]:
    """Whether one test is passed, and the seconds it took."""
    if test.kind == "functional":
        answer = run_functional(
            code,
            test.function,
            *test.arguments,
            limits=limits,
            preamble=CUSTOMARY_IMPORTS,
            sandbox=sandbox,
        )
        passed = answer.returned and same_value(answer.value, test.expected)
        return passed, answer.run.seconds
    run = sandbox.run(code, stdin=test.input, limits=limits, preamble=CUSTOMARY_IMPORTS)
    return run.status == "ok" and same_output(run.stdout, test.output), run.seconds


def same_output(got: str, expected: str) -> bool:
    """Line by line, without surrounding blanks; a line of numbers may write them in another way."""
    return same_lines(got, expected, _same_words)


def same_lines(
    got: str, expected: str, same_words: Callable[[Sequence[str], Sequence[str]], bool]
) -> bool:
    """Line by line, without surrounding blanks; ``same_words`` judges lines that differ."""

    def same(line: str, wanted: str) -> bool:
        line, wanted = line.strip(), wanted.strip()
        return line == wanted or same_words(line.split(), wanted.split())

    lines, expected_lines = got.strip().split("\n"), expected.strip().split("\n")
    return len(lines) == len(expected_lines) and all(map(same, lines, expected_lines))


def _same_words(got: Sequence[str], expected: Sequence[str]) -> bool:
    return len(got) == len(expected) and all(map(_same_number, got, expected))


def _same_number(got: str, expected: str) -> bool:
    if got == expected:
        return True
    if max(len(got), len(expected)) > _NUMBER_CHARS:
        return False
    try:
        return Decimal(got) == Decimal(expected)
    except InvalidOperation:
        return False


def same_value(got: Any, expected: Any) -> bool:
    """Equality of plain data, without ``True == 1``; a list of one may stand for its only element.

    The last rule is for data sets that wrap every expected result in a list.
    """
    try:
        return _equal(got, expected) or (
            isinstance(expected, list) and len(expected) == 1 and _equal(got, expected[0])
        )
    except RecursionError:
        return False


def _equal(got: Any, expected: Any) -> bool:
    if isinstance(got, bool) or isinstance(expected, bool):
        return got is expected
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(got, list) and len(got) == len(expected) and all(map(_equal, got, expected))
        )
    if isinstance(expected, dict):
        return (
            isinstance(got, dict)
            and got.keys() == {str(key) for key in expected}
            and all(_equal(got[str(key)], value) for key, value in expected.items())
        )
    return bool(got == expected)
