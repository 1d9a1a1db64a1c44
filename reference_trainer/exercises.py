r"""Imperfect worked solutions for the supervised warm-up of the tiny models, per task.

They are wrong on purpose, in measured doses: the wrong strategy, slips in the steps, filler words.
What the warm-up leaves open is what RL can then improve.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, Protocol

from reference_trainer.tasks.code import CodeTask, passes, write_expression
from reference_trainer.tasks.code import write_chain as write_operations
from reference_trainer.tasks.math import MathTask, apply, evaluate_left, last_boxed, write_chain
from reference_trainer.tasks.unit_tests import last_code_block

TinyTask = MathTask | CodeTask
Strategy = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Noise:
    """Doses of imperfection.

    Attributes:
        wrong_strategy: Share of solutions that evaluate from right to left.
        slip: Chance that one step is wrong.
        filler: Share of solutions with filler words.
        careless: Share of selections that ignore the majority.
        verbose_share: Share of selecting, judging and synthesizing turns that re-solve the problem
            in prose before the stamp.
        selection: What the aggregator boxes: ``"index"`` of the candidate, or its ``"answer"``.
        terse_share: Share of math solutions that box the answer of the right strategy without any
            work.
        candidates_terse_share: The same among the candidates that the aggregator is shown; negative
            for ``terse_share``.
        prose_answers: An aggregator that re-solves boxes its own answer instead of a selection, as
            larger models do.
        candidates: How many candidates the aggregator is shown; one number is drawn of several.
        any_of_majority: The aggregator selects any of the candidates that most agree with, instead
            of the first one: it learns no preference for a place.
    """

    wrong_strategy: float = 0.45
    slip: float = 0.08
    filler: float = 0.15
    careless: float = 0.02
    verbose_share: float = 0.0
    selection: str = "index"
    terse_share: float = 0.0
    candidates_terse_share: float = -1.0
    prose_answers: bool = False
    candidates: tuple[int, ...] = (3,)
    any_of_majority: bool = False

    @property
    def of_candidates(self) -> Noise:
        """The doses of the candidates in the aggregator's prompt."""
        if self.candidates_terse_share < 0:
            return self
        return replace(self, terse_share=self.candidates_terse_share)

    @property
    def of_prose(self) -> Noise:
        """The doses of a solution that is written out."""
        return replace(self, terse_share=0.0, candidates_terse_share=0.0)


@dataclass(frozen=True, slots=True)
class Chain:
    """One exercise.

    Attributes:
        digits: Of the chain.
        ops: Operators between (math) or before (code) them.
        question: As the task writes it.
    """

    digits: list[int]
    ops: list[str]
    question: str


class Exercises(Protocol):
    """Exercises of one task, with solutions that can be compared."""

    def draw(self, rng: random.Random) -> Chain:
        """A chain."""
        ...

    def solution(
        self,
        chain: Chain,
        *,
        noise: Noise,
        rng: random.Random,
        strategy: Strategy | None = None,
    ) -> str:
        """A worked solution; without ``strategy`` one is drawn."""
        ...

    def prose(self, solution: str) -> str:
        """A solution without its answer."""
        ...

    def answer(self, solution: str) -> str:
        """What two solutions with the same answer share; empty without an answer."""
        ...

    def final(self, solution: str) -> str:
        """The answer alone, in the form that the task demands."""
        ...

    def correct(self, chain: Chain, solution: str) -> bool:
        """Whether the answer is right."""
        ...

    def worked(self, solution: str) -> bool:
        """Whether the solution shows work, by the right strategy."""
        ...


@dataclass(frozen=True, slots=True)
class MathExercises:
    """Arithmetic chains."""

    task: MathTask

    def draw(self, rng: random.Random) -> Chain:
        """A chain whose two strategies disagree."""
        digits, ops = self.task.draw(rng)
        return Chain(digits, ops, write_chain(digits, ops))

    def solution(
        self,
        chain: Chain,
        *,
        noise: Noise,
        rng: random.Random,
        strategy: Strategy | None = None,
    ) -> str:
        """The strategy, the steps with their results, and a boxed answer."""
        digits, ops = chain.digits, chain.ops

        def step(op: str, a: int, b: int) -> int:
            return rng.randrange(10) if rng.random() < noise.slip else apply(op, a, b)

        # A dose of 0 draws nothing: demonstrations without terse ones stay as they were.
        if noise.terse_share > 0 and rng.random() < noise.terse_share:
            value = evaluate_left(digits, ops)
            slipped = rng.random() < noise.slip
            return f" \\boxed{{ {rng.randrange(10) if slipped else value} }}"
        filler = _filler(noise, rng)
        if (strategy or draw_strategy(noise, rng)) == "right":
            value, text = digits[-1], " right"
            for op, digit in zip(reversed(ops), reversed(digits[:-1]), strict=True):
                result = step(op, digit, value)
                text += f" {digit} {op} {value} = {result}"
                value = result
        else:
            value, text = digits[0], f" left {digits[0]}"
            for op, digit in zip(ops, digits[1:], strict=True):
                value = step(op, value, digit)
                text += f" {op} {digit} = {value}"
        return f"{text}{filler} so \\boxed{{ {value} }}"

    def prose(self, solution: str) -> str:
        """Up to ``so``."""
        return solution.partition(" so \\boxed")[0] + " so"

    def answer(self, solution: str) -> str:
        """Content of the box."""
        return last_boxed(solution) or ""

    def final(self, solution: str) -> str:
        """The box."""
        return f" so \\boxed{{ {self.answer(solution)} }}"

    def correct(self, chain: Chain, solution: str) -> bool:
        """Compare with the value from left to right."""
        return self.answer(solution) == str(evaluate_left(chain.digits, chain.ops))

    def worked(self, solution: str) -> bool:
        """Whether it names the right strategy: both tasks' solutions begin with one."""
        return solution.split()[:1] == ["left"]


@dataclass(frozen=True, slots=True)
class CodeExercises:
    """Programs for chains of operations."""

    task: CodeTask

    def draw(self, rng: random.Random) -> Chain:
        """A chain that the two strategies make different programs of."""
        digits, ops = self.task.draw(rng)
        return Chain(digits, ops, write_operations(digits, ops))

    def solution(
        self,
        chain: Chain,
        *,
        noise: Noise,
        rng: random.Random,
        strategy: Strategy | None = None,
    ) -> str:
        """The strategy and a fenced program; a slip replaces a digit or an operator."""
        filler = _filler(noise, rng)
        chosen = strategy or draw_strategy(noise, rng)
        digits, ops = list(chain.digits), list(chain.ops)
        for i in range(len(ops)):
            if rng.random() < noise.slip:
                if rng.random() < 0.5:
                    digits[i] = rng.randrange(10)
                else:
                    ops[i] = rng.choice(self.task.operators)
        if chosen == "right":
            digits.reverse()
            ops.reverse()
        program = f"def f(x): return {write_expression(digits, ops)}"
        return f" {chosen}{filler} ```python \n {program} \n ```"

    def prose(self, solution: str) -> str:
        """Up to the fence, and the expression."""
        expression = self.answer(solution).partition("return")[2]
        return f"{solution.partition(' ```python')[0]}{expression} so"

    def answer(self, solution: str) -> str:
        """The program."""
        return (last_code_block(solution) or "").strip()

    def final(self, solution: str) -> str:
        """The fenced program."""
        return f" ```python \n {self.answer(solution)} \n ```"

    def correct(self, chain: Chain, solution: str) -> bool:
        """Run the task's hidden tests."""
        return _passes(self.answer(solution), self.task.cases(chain.digits, chain.ops))

    def worked(self, solution: str) -> bool:
        """Whether it names the right strategy: both tasks' solutions begin with one."""
        return solution.split()[:1] == ["left"]


_passes = lru_cache(maxsize=1 << 16)(passes)


def exercises_for(task: TinyTask) -> Exercises:
    """The exercises of ``task``."""
    return MathExercises(task) if isinstance(task, MathTask) else CodeExercises(task)


def _filler(noise: Noise, rng: random.Random) -> str:
    return " wait check" if rng.random() < noise.filler else ""


def draw_strategy(noise: Noise, rng: random.Random) -> Strategy:
    """The wrong strategy in the dose of ``noise``."""
    return "right" if rng.random() < noise.wrong_strategy else "left"
