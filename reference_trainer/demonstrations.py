r"""Imperfect demonstrations for the supervised warm-up of the tiny models.

They are wrong on purpose, in measured doses: the wrong strategy, slips in the arithmetic, filler
words, and aggregators that re-solve instead of stamping. What the warm-up leaves open is what RL
can then improve.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reference_trainer.tasks.math import MathTask, apply, last_boxed
from reference_trainer.workflows.prompts import Prompts

Piece = tuple[str, bool]
"""Text, and whether the language-model loss runs on it."""


@dataclass(frozen=True, slots=True)
class Noise:
    """Doses of imperfection.

    Attributes:
        wrong_strategy: Share of solutions that evaluate from right to left.
        slip: Chance that one arithmetic step is wrong.
        filler: Share of solutions with filler words.
        careless: Share of selections that ignore the majority.
        verbose_share: Share of selecting turns that re-solve the problem in prose before the stamp.
        selection: What the aggregator boxes: ``"index"`` of the candidate, or its ``"answer"``.
    """

    wrong_strategy: float = 0.45
    slip: float = 0.08
    filler: float = 0.15
    careless: float = 0.02
    verbose_share: float = 0.0
    selection: str = "index"


def solution(digits: list[int], ops: list[str], *, noise: Noise, rng: random.Random) -> str:
    """A worked solution that ends in a boxed answer."""

    def step(op: str, a: int, b: int) -> int:
        return rng.randrange(10) if rng.random() < noise.slip else apply(op, a, b)

    filler = " wait check" if rng.random() < noise.filler else ""
    if rng.random() < noise.wrong_strategy:
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


def generator(task: MathTask, prompts: Prompts, *, noise: Noise, rng: random.Random) -> list[Piece]:
    """The generator's prompt and one solution."""
    digits, ops = task.draw(rng)
    question = _question(digits, ops)
    return [
        (prompts.fill("generator", question=question), False),
        (solution(digits, ops, noise=noise, rng=rng), True),
    ]


def aggregator(
    task: MathTask, prompts: Prompts, *, noise: Noise, rng: random.Random
) -> list[Piece]:
    """Three candidates and a choice. The candidates are trained on too.

    Without that, a small model unlearns arithmetic while it learns to choose.
    """
    digits, ops = task.draw(rng)
    texts = [solution(digits, ops, noise=noise, rng=rng) for _ in range(3)]
    answers = [last_boxed(text) or "" for text in texts]
    counts = [answers.count(answer) for answer in answers]
    careless = rng.random() < noise.careless
    chosen = rng.randrange(3) if careless else counts.index(max(counts))
    stamp = answers[chosen] if noise.selection == "answer" else str(chosen + 1)
    prose = ""
    if rng.random() < noise.verbose_share:
        prose = solution(digits, ops, noise=noise, rng=rng).partition(" so \\boxed")[0] + " so"
    pieces: list[Piece] = []
    head, _, tail = prompts.fill(
        "aggregator", question=_question(digits, ops), candidates="\0"
    ).partition("\0")
    pieces.append((head, False))
    for number, text in enumerate(texts, start=1):
        header = prompts.fill("aggregator", "candidate", number=str(number), text="")
        pieces += [(header, False), (text, True)]
    return [*pieces, (tail, False), (f"{prose} \\boxed{{ {stamp} }}", True)]


Demonstrator = Callable[..., list[Piece]]

DEMONSTRATORS: Mapping[str, Demonstrator] = {"generator": generator, "aggregator": aggregator}
"""Role to the function that writes one demonstration for it."""


def _question(digits: list[int], ops: list[str]) -> str:
    return f" {digits[0]}" + "".join(
        f" {op} {digit}" for op, digit in zip(ops, digits[1:], strict=True)
    )
