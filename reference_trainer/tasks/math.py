r"""Synthetic arithmetic: chains such as ``9 - 4 * 3``, from left to right, modulo 10.

A solver has two strategies, ``left`` (right) and ``right`` (wrong order). Problems on which both
give the same answer are left out, so the strategy alone decides whether careful arithmetic pays:
that gives RL an easy thing to learn first (the strategy) and a slower one after it (the
arithmetic).
"""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass
from itertools import count
from typing import Literal

from reference_trainer.tasks import Grade, Problem, Split

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_VALIDATION_SHARE = 8
"""One chain in eight belongs to validation."""


def apply(op: str, a: int, b: int) -> int:
    """``a op b`` modulo 10 for ``+``, ``-`` and ``*``."""
    return {"+": a + b, "-": a - b, "*": a * b}[op] % 10


def parse_chain(question: str) -> tuple[list[int], list[str]]:
    """Digits and operators of ``" 9 - 4 * 3"``."""
    words = question.split()
    return [int(word) for word in words[::2]], words[1::2]


def evaluate_left(digits: list[int], ops: list[str]) -> int:
    """Value from left to right: ``((9 - 4) * 3)``. This is the task's definition of correct."""
    value = digits[0]
    for op, digit in zip(ops, digits[1:], strict=True):
        value = apply(op, value, digit)
    return value


def evaluate_right(digits: list[int], ops: list[str]) -> int:
    """Value from right to left: ``(9 - (4 * 3))``. The wrong strategy."""
    value = digits[-1]
    for op, digit in zip(reversed(ops), reversed(digits[:-1]), strict=True):
        value = apply(op, digit, value)
    return value


def last_boxed(text: str) -> str | None:
    r"""Content of the last ``\boxed{...}`` without surrounding spaces, None if there is none."""
    boxes = _BOXED.findall(text)
    return str(boxes[-1]).strip() if boxes else None


@dataclass(frozen=True, slots=True)
class MathTask:
    """Chains of ``min_ops`` to ``max_ops`` operators drawn from ``operators``.

    Attributes:
        seed: Another seed gives another sequence of problems from the same two disjoint pools.
        min_ops: Fewest operators in a chain.
        max_ops: Most operators in a chain; more is harder.
        operators: Which operators occur.
        name: ``"math"``.
    """

    seed: int = 0
    min_ops: int = 2
    max_ops: int = 3
    operators: str = "+-*"
    name: Literal["math"] = "math"

    def problem(self, split: Split, index: int) -> Problem:
        """Chain number ``index``; the splits never share a chain."""
        rng = random.Random(f"{self.seed}/{split}/{index}")
        for _ in count():
            digits, ops = self.draw(rng)
            question = write_chain(digits, ops)
            if (zlib.crc32(question.encode()) % _VALIDATION_SHARE == 0) == (split == "validation"):
                break
        return Problem(f"{split}-{index}", question, str(evaluate_left(digits, ops)))

    def draw(self, rng: random.Random) -> tuple[list[int], list[str]]:
        """Digits and operators of one chain whose two strategies disagree."""
        while True:
            length = rng.randint(self.min_ops, self.max_ops)
            digits = [rng.randrange(10) for _ in range(length + 1)]
            ops = [rng.choice(self.operators) for _ in range(length)]
            if evaluate_left(digits, ops) != evaluate_right(digits, ops):
                return digits, ops

    def grade(self, problem: Problem, text: str) -> Grade:
        r"""Compare the last ``\boxed{...}`` of ``text`` with the answer."""
        answer = last_boxed(text)
        return Grade(answer is not None and answer == problem.answer, answer)


def write_chain(digits: list[int], ops: list[str]) -> str:
    """``" 9 - 4 * 3"``."""
    return f" {digits[0]}" + "".join(
        f" {op} {digit}" for op, digit in zip(ops, digits[1:], strict=True)
    )
