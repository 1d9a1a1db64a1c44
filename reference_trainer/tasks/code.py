r"""Synthetic programs: ``add 3 ; mul 8 ;`` is to become ``def f(x): return ( ( x + 3 ) * 8 )``.

The strategies are those of the arithmetic task: from left to right (right), and from right to left
(wrong order). A program is right if it passes every hidden test. Programs of the tiny vocabulary
are evaluated here, on their syntax tree, some 500 times faster than in a process of their own;
anything else that Python can read goes to the sandbox, so the verdict never depends on the path.
"""

from __future__ import annotations

import ast
import json
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal

from reference_trainer.tasks import Grade, Problem, Split
from reference_trainer.tasks.sandbox import Sandbox
from reference_trainer.tasks.unit_tests import UnitTest, last_code_block, passes_tests

_VALIDATION_SHARE = 8
"""One chain in eight belongs to validation."""

_INPUTS = range(-9, 21)
MOST_TESTS = len(_INPUTS)
_MOST_NODES = 200
"""Longer programs go to the sandbox, which limits time and memory."""

OPERATION_WORDS: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul"}
"""What an operator is called in questions."""

_APPLY: Mapping[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}

_BINARY: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: _APPLY["+"],
    ast.Sub: _APPLY["-"],
    ast.Mult: _APPLY["*"],
}


class _NotArithmeticError(Exception):
    """The program is more than one arithmetic expression in ``x``."""


def write_chain(digits: Sequence[int], ops: Sequence[str]) -> str:
    """``" add 3 ; mul 8 ;"``."""
    return "".join(
        f" {OPERATION_WORDS[op]} {digit} ;" for op, digit in zip(ops, digits, strict=True)
    )


def write_expression(digits: Sequence[int], ops: Sequence[str]) -> str:
    """``"( ( x + 3 ) * 8 )"``: the operations in the given order."""
    steps = "".join(f" {op} {digit} )" for op, digit in zip(ops, digits, strict=True))
    return "( " * len(ops) + "x" + steps


def _run(digits: Sequence[int], ops: Sequence[str], x: int) -> int:
    for op, digit in zip(ops, digits, strict=True):
        x = _APPLY[op](x, digit)
    return x


def arithmetic(program: str) -> Callable[[int], int] | None:
    """The function ``f`` of a program that is nothing but ``def f(x): return <arithmetic>``.

    Integers, ``x``, ``+``, ``-``, ``*`` and parentheses are arithmetic.

    Returns:
        ``f``, or None for any other program.

    Raises:
        SyntaxError: If it is no Python.
    """
    try:
        tree = ast.parse(program)
        expression = _returned(tree)
    except (_NotArithmeticError, RecursionError, MemoryError, ValueError):
        return None
    return lambda x: _value(expression, x)


def _returned(tree: ast.Module) -> ast.expr:
    if sum(1 for _ in ast.walk(tree)) > _MOST_NODES:
        raise _NotArithmeticError
    match tree.body:
        case [
            ast.FunctionDef(
                name="f",
                args=ast.arguments(
                    posonlyargs=[],
                    args=[ast.arg(arg="x", annotation=None)],
                    vararg=None,
                    kwonlyargs=[],
                    kwarg=None,
                    defaults=[],
                ),
                body=[ast.Return(value=ast.expr() as expression)],
                decorator_list=[],
                returns=None,
            )
        ]:
            _check(expression)
            return expression
    raise _NotArithmeticError


def _check(node: ast.expr) -> None:
    match node:
        case ast.Name(id="x"):
            return
        # `type`, because True is an int and `True + 1` is not meant here.
        case ast.Constant(value=value) if type(value) is int:
            return
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _check(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            _check(left)
            return _check(right)
    raise _NotArithmeticError


def _value(node: ast.expr, x: int) -> int:
    match node:
        case ast.Name():
            return x
        case ast.Constant(value=int(value)):
            return value
        case ast.UnaryOp(op=op, operand=operand):
            value = _value(operand, x)
            return -value if isinstance(op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, x), _value(right, x))
    raise AssertionError(ast.dump(node))


def passes(program: str, cases: str) -> bool:
    """Whether ``f`` of ``program`` gives the right result for every case.

    Args:
        program: Python text.
        cases: JSON list of ``[argument, result]``.
    """
    try:
        function = arithmetic(program)
    except SyntaxError:
        return False
    if function is None:
        return passes_in_sandbox(program, cases)
    return all(function(given) == wanted for given, wanted in json.loads(cases))


@lru_cache(maxsize=4096)
def passes_in_sandbox(program: str, cases: str, *, sandbox: Sandbox | None = None) -> bool:
    """The same verdict as :func:`passes`, by running the program."""
    tests = [
        UnitTest("functional", function="f", arguments=(given,), expected=wanted)
        for given, wanted in json.loads(cases)
    ]
    return passes_tests(program, tests, sandbox=sandbox)


@dataclass(frozen=True, slots=True)
class CodeTask:
    """Chains of ``min_ops`` to ``max_ops`` operations.

    Attributes:
        seed: Another seed gives another sequence of problems from the same two disjoint pools.
        min_ops: Fewest operations in a chain.
        max_ops: Most operations in a chain; more is harder.
        operators: Which operations occur, as ``+-*``.
        tests: Hidden tests per problem.
        name: ``"code"``.
    """

    seed: int = 0
    min_ops: int = 2
    max_ops: int = 3
    operators: str = "+-*"
    tests: int = 6
    name: Literal["code"] = "code"

    def problem(self, split: Split, index: int) -> Problem:
        """Chain number ``index``; the splits never share a chain."""
        rng = random.Random(f"{self.seed}/{split}/{index}")
        for _ in count():
            digits, ops = self.draw(rng)
            question = write_chain(digits, ops)
            if (zlib.crc32(question.encode()) % _VALIDATION_SHARE == 0) == (split == "validation"):
                break
        return Problem(f"{split}-{index}", question, self.cases(digits, ops))

    def draw(self, rng: random.Random) -> tuple[list[int], list[str]]:
        """Digits and operators of one chain that the two strategies make different programs of."""
        while True:
            length = rng.randint(self.min_ops, self.max_ops)
            digits = [rng.randrange(10) for _ in range(length)]
            ops = [rng.choice(self.operators) for _ in range(length)]
            inputs = self._inputs(digits, ops)
            if any(_run(digits, ops, x) != _run(digits[::-1], ops[::-1], x) for x in inputs):
                return digits, ops

    def cases(self, digits: Sequence[int], ops: Sequence[str]) -> str:
        """Arguments and right results as JSON; a chain has the same ones in every run."""
        return json.dumps([[x, _run(digits, ops, x)] for x in self._inputs(digits, ops)])

    def _inputs(self, digits: Sequence[int], ops: Sequence[str]) -> list[int]:
        return random.Random(write_chain(digits, ops)).sample(_INPUTS, self.tests)

    def grade(self, problem: Problem, text: str) -> Grade:
        """Run the last fenced block of ``text`` against the hidden tests; all must pass."""
        block = last_code_block(text)
        if block is None:
            return Grade(False, None)
        # The tokens of the tiny vocabulary begin with a blank, which Python takes for indentation.
        program = block.strip()
        return Grade(passes(program, problem.answer), program)
