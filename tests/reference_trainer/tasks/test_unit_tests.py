from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_trainer.tasks.sandbox import Limits, Sandbox
from reference_trainer.tasks.unit_tests import (
    CUSTOMARY_IMPORTS,
    UnitTest,
    last_code_block,
    passes_tests,
    same_output,
    same_value,
)

DOUBLE = "print(2 * int(input()))"
STDIN = [UnitTest("stdin_stdout", f"{n}\n", f"{2 * n}\n") for n in range(5)]
CALLS = [
    UnitTest("functional", function="rev", arguments=([1, 2],), expected=[2, 1]),
    UnitTest("functional", function="rev", arguments=([],), expected=[]),
]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=2) as one:
        yield one


def test_a_right_program_passes_both_kinds(sandbox: Sandbox) -> None:
    assert passes_tests(DOUBLE, STDIN, sandbox=sandbox)
    # List, with no import: what LiveCodeBench's grader provides.
    code = "class Solution:\n    def rev(self, a: List[int]) -> List[int]:\n        return a[::-1]"
    assert passes_tests(code, CALLS, sandbox=sandbox)


def test_a_half_right_program_is_wrong(sandbox: Sandbox) -> None:
    code = "n = int(input())\nprint(2 * n if n != 1 else 'no')"
    assert passes_tests(code, STDIN[:1], sandbox=sandbox)
    assert not passes_tests(code, STDIN, sandbox=sandbox)


def test_right_output_does_not_make_up_for_a_crash(sandbox: Sandbox) -> None:
    assert not passes_tests(DOUBLE + "\n1 / 0", STDIN[:1], sandbox=sandbox)


def test_a_program_that_does_not_end_fails_at_the_limit(sandbox: Sandbox) -> None:
    limits = Limits(seconds=0.3)
    assert not passes_tests("while True: pass", STDIN, limits=limits, sandbox=sandbox)


def test_time_for_all_tests_together_is_limited(sandbox: Sandbox) -> None:
    code = "import time; time.sleep(0.4)\n" + DOUBLE
    assert not passes_tests(code, STDIN, total_seconds=1.0, sandbox=sandbox)


def test_no_tests_is_not_a_pass(sandbox: Sandbox) -> None:
    assert not passes_tests(DOUBLE, [], sandbox=sandbox)


LIBRARY: dict[str, tuple[tuple[Any, ...], Any]] = {
    "gcd": ((12, 18), 6),
    "lcm": ((4, 6), 12),
    "factorial": ((5,), 120),
    "comb": ((5, 2), 10),
    "perm": ((5, 2), 20),
    "add": ((2, 3), 5),
    "mul": ((2, 3), 6),
    "pow": ((2, 3), 8),
    "median": (([3, 1, 2],), 2),
    "mean": (([1, 3],), 2),
    "mode": (([1, 1, 2],), 1),
    "sum": (([1, 2],), 3),
    "sorted": (([2, 1],), [1, 2]),
    "isqrt": ((10,), 3),
    "max": (([1, 5],), 5),
    "split": (("-", "a-b"), ["a", "b"]),
    "capwords": (("a b",), "A B"),
    "prod": (([2, 3],), 6),
    "abs": ((-3,), 3),
    "concat": (([1], [2]), [1, 2]),
    "floor": ((2.5,), 2),
}
"""What the customary imports already have under names that data sets ask for."""

METHODS = {
    "search": ("a, x", "a.index(x) if x in a else -1", ([4, 5, 6], 5), 1),
    "merge": ("a", "[[min(map(min, a)), max(map(max, a))]]", ([[1, 3], [2, 6]],), [[1, 6]]),
    "compress": ("s", "''.join(c + str(s.count(c)) for c in sorted(set(s)))", ("aab",), "a2b1"),
    "permutations": ("a", "[a, a[::-1]]", ([1, 2],), [[1, 2], [2, 1]]),
    "product": ("a", "a[0] * a[1]", ([3, 4],), 12),
    "count": ("a, x", "sum(y == x for y in a)", ([1, 1, 2], 1), 2),
    "split": ("s", "s.split()", ("a b",), ["a", "b"]),
    "sample": ("a", "a[::2]", ([1, 2, 3],), [1, 3]),
    "accumulate": ("a", "[sum(a[: i + 1]) for i in range(len(a))]", ([1, 2],), [1, 3]),
    "reduce": ("a, f", "[x for x in a if x != f]", ([1, 2], 2), [1]),
}
"""Methods that the customary imports have another meaning for."""


def livecodebench_finds(code: str, function: str) -> bool:
    """Whether LiveCodeBench's grader finds something to call.

    That grader puts star imports in front of the program. If the text has ``class Solution`` in it,
    it takes the attribute of an instance, else that of the module. Ours takes the same object
    whenever the program made it, and nothing where the star imports made it.
    """
    names: dict[str, Any] = {}
    exec(f"{CUSTOMARY_IMPORTS}\n\n{code}", names)
    solution = "class Solution" in code
    return hasattr(names["Solution"](), function) if solution else function in names


@pytest.mark.parametrize("function", LIBRARY)
def test_a_program_that_defines_nothing_earns_nothing(function: str, sandbox: Sandbox) -> None:
    arguments, expected = LIBRARY[function]
    test = UnitTest("functional", function=function, arguments=arguments, expected=expected)
    assert not passes_tests("pass", [test], sandbox=sandbox)
    # The one difference to LiveCodeBench's grader, on purpose: there an empty program is right.
    assert livecodebench_finds("pass", function)


@pytest.mark.parametrize("function", METHODS)
def test_a_solution_comes_before_what_was_imported(function: str, sandbox: Sandbox) -> None:
    parameters, body, arguments, expected = METHODS[function]
    test = UnitTest("functional", function=function, arguments=arguments, expected=expected)
    method = f"class Solution:\n    def {function}(self, {parameters}):\n        return {body}"
    plain = f"def {function}({parameters}):\n    return {body}"
    for code in (method, plain):
        assert passes_tests(code, [test], sandbox=sandbox), code
        assert livecodebench_finds(code, function)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("def f(): return 1", True),
        ("f = lambda: 1", True),
        ("from functools import partial\nf = partial(int, 1)", True),
        ("if True:\n    def f(): return 1", True),
        ("class Solution:\n    def f(self): return 1", True),
        ("class Base:\n    def f(self): return 1\nclass Solution(Base): pass", True),
        ("def f(): return 1\nclass Solution:\n    def g(self): return 1", False),
        ("class Solution:\n    def g(self): return 1\nf = Solution().g", False),
        ("class Other:\n    def f(self): return 1", False),
        ("def g(): return 1", False),
        ("", False),
    ],
)
def test_the_function_is_looked_up_as_livecodebench_does(
    code: str, found: bool, sandbox: Sandbox
) -> None:
    test = UnitTest("functional", function="f", expected=1)
    assert passes_tests(code, [test], sandbox=sandbox) is found
    assert livecodebench_finds(code, "f") is found


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("1 2\n3\n", "1 2\n3", True),
        ("1  2 \n3", "1 2\n3", True),
        ("1.0\n", "1", True),
        ("0.50", "5e-1", True),
        ("yes", "YES", False),
        ("1\n\n2", "1\n2", False),
        ("", "1", False),
        ("1" * 5000, "1" * 4999 + "2", False),
        ("nan", "nan", True),
        ("sNaN", "1", False),
    ],
)
def test_outputs_are_compared_by_line_and_number(got: str, expected: str, same: bool) -> None:
    assert same_output(got, expected) is same


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ([1, 2], (1, 2), True),
        (7, [7], True),
        ([7], 7, False),
        (True, 1, False),
        (1.0, 1, True),
        ({"1": [2]}, {1: [2]}, True),
        (None, False, False),
        ("1", 1, False),
    ],
)
def test_values_are_compared_as_plain_data(got: object, expected: object, same: bool) -> None:
    assert same_value(got, expected) is same


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=20))
def test_every_value_is_the_same_as_itself(value: object) -> None:
    assert same_value(value, value)


def test_the_last_code_block_counts() -> None:
    text = "first\n```python\na = 1\n```\nbetter\n```\nb = 2\n```\ndone"
    assert last_code_block(text) == "b = 2\n"
    assert last_code_block("```python\nnever closed") is None
