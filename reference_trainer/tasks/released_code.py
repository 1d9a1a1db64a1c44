"""Grades programs as the released code of arXiv 2605.24202 does: LiveCodeBench's grader, as it was.

Programs run in the sandbox all the same, each test in a process of its own. What that changes, and
the one rule that is left out on purpose, are rows of ``docs/paper_compat.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

from reference_trainer.tasks import released_script
from reference_trainer.tasks.sandbox import Limits, Sandbox, default_sandbox, run_functional
from reference_trainer.tasks.unit_tests import UnitTest, same_lines

_BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_LONGEST_NUMBER = 4000
_PER_TEST, _AT_START, _AT_MOST = 1.0, 5.0, 120.0

_NAMES = {
    "itertools": "accumulate chain combinations count cycle groupby islice pairwise permutations "
    "product repeat zip_longest",
    "string": "ascii_lowercase ascii_uppercase",
    "math": "atan2 ceil comb factorial floor gcd inf isqrt log log10 log2 pi prod sqrt",
    "collections": "Counter OrderedDict defaultdict deque",
    "bisect": "bisect_left bisect_right insort",
    "heapq": "heapify heappop heappush heapreplace merge nlargest nsmallest",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "random": "randrange shuffle",
    "operator": "iand itemgetter or_ sub xor",
    "os.path": "commonprefix",
    "copy": "deepcopy",
    "time": "time",
    "typing": "Any Callable Deque Dict Generator Iterable Iterator List Optional Set Tuple Union",
}
_MODULES = (
    "bisect collections copy datetime functools heapq io itertools math operator os random re "
    "string sys"
)
RELEASED_IMPORTS = "\n".join(
    [
        *(f"from {module} import {', '.join(names.split())}" for module, names in _NAMES.items()),
        "from re import search as re_search",
        *(f"import {module}" for module in _MODULES.split()),
        "import builtins as _builtins; _builtins.quit = None; del _builtins",
    ]
)
"""Names that a program finds in that grader; ``np`` and ``pd`` are added where it uses them."""


def released_block(text: str) -> str | None:
    """Content of the last fenced block whose language is one word or none; None without one."""
    blocks = _BLOCK.findall(text)
    return str(blocks[-1]).strip() if blocks else None


def passes_released(
    code: str,
    tests: Sequence[UnitTest],
    *,
    limits: Limits | None = None,
    sandbox: Sandbox | None = None,
) -> bool:
    """Whether ``code`` passes every test; stops at the first failure.

    Args:
        code: The program.
        tests: The tests.
        limits: Limits of each test.
        sandbox: Where to run; None for the process's own.
    """
    limits = limits or Limits()
    sandbox = sandbox or default_sandbox()
    left = min((limits.seconds + _PER_TEST) * len(tests) + _AT_START, _AT_MOST)
    for test in tests:
        allowed = replace(limits, seconds=min(limits.seconds, left))
        right, seconds = _passes(code, test, allowed, sandbox)
        left -= seconds
        if not right or left <= 0.0:
            return False
    return bool(tests)


def _passes(code: str, test: UnitTest, limits: Limits, sandbox: Sandbox) -> tuple[bool, float]:
    preamble = RELEASED_IMPORTS + _heavy_imports(code)
    if test.kind == "stdin_stdout":
        script = f"{_runner()}\nrun({code!r}, {preamble!r})\n"
        run = sandbox.run(script, stdin=test.input, limits=limits)
        return run.status == "ok" and same_released_output(run.stdout, test.output), run.seconds
    # Wherever the text says so, a method of that class is called; without the class it is an error.
    named = "\nSolution\n" if "class Solution" in code else ""
    answer = run_functional(
        code + named,
        test.function,
        *test.arguments,
        limits=limits,
        preamble=preamble,
        sandbox=sandbox,
    )
    return answer.returned and _same_value(answer.value, test.expected), answer.run.seconds


def _heavy_imports(code: str) -> str:
    """They cost most of a second each, in a process per test."""
    heavy = {"np": "numpy", "pd": "pandas"}
    return "".join(
        f"\nimport {module} as {name}"
        for name, module in heavy.items()
        if re.search(rf"\b{name}\b", code)
    )


@cache
def _runner() -> str:
    """The text of the module that runs scripts; the sandbox has none of this package."""
    return Path(released_script.__file__).read_text("utf-8")


def same_released_output(got: str, expected: str) -> bool:
    """Line by line without blanks at the ends; lines that differ must be equal numbers, all."""
    return same_lines(got, expected, _same_numbers)


def _same_numbers(got: Sequence[str], expected: Sequence[str]) -> bool:
    numbers = _numbers(got)
    return numbers is not None and numbers == _numbers(expected)


def _numbers(words: Sequence[str]) -> list[Decimal] | None:
    if any(len(word) > _LONGEST_NUMBER for word in words):
        return None
    try:
        return [Decimal(word) for word in words]
    except InvalidOperation:
        return None


def _same_value(got: Any, expected: Any) -> bool:
    """Python's own equality: ``1 == True`` and ``2 == 2.0``; a tuple came back as a list."""
    try:
        return bool(got == expected)
    except RecursionError:
        return False
