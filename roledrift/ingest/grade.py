r"""Whether an answer is right, from what was written.

Boxed answers are compared with a reference answer, by normalised text and by value, without a
computer algebra system: an answer that only algebra could tell equal counts as wrong, the same way
all run long. Code is not graded: that would mean running it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from roledrift.measure.shape import boxes
from roledrift.workflow import Duty, Workflow

_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\frac\{(-?[\d.]+)\}\{(-?[\d.]+)\}\Z")
_PLAIN = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?(?:/\d{1,40})?\Z")
_NOISE = ("\\left", "\\right", "\\!", "\\,", "\\;", "\\ ", "$", "\\%", "%", "^\\circ", "^{\\circ}")
_LONGEST_TRUTH = 400


def answer_text(value: object) -> str | None:
    """A reference answer as text; None for test suites and anything long."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return f"{value:.15g}" if abs(value) < 1e15 else None
    if isinstance(value, list) and len(value) == 1:
        return answer_text(value[0])
    return _reference(value) if isinstance(value, str) else None


@lru_cache(maxsize=4096)
def _reference(value: str) -> str | None:
    """The same of a text; a problem's answer comes again with each of its rollouts."""
    value = value.strip()
    if not value or len(value) > _LONGEST_TRUTH or (value[0] in "[{" and value[-1] in "]}"):
        return None
    inside = boxes(value)
    return inside[-1] if inside else value


def is_right(text: str, truth: str) -> bool:
    r"""Whether the last ``\boxed{}`` of ``text`` (after a think block) is the reference answer."""
    answer = boxes(text.rpartition("</think>")[2] or text)
    return bool(answer) and same(answer[-1], truth)


def boxed_run(outputs: Iterable[tuple[str | None, float | None]]) -> bool:
    r"""Whether the first outputs of a run answer in boxes, so that a missing box is a wrong answer.

    Args:
        outputs: Text and reward of some outputs. If none has a box and some were rewarded, the task
            wants its answers in another form, and grading by boxes would call all of them wrong.
    """
    rewarded = False
    for text, reward in outputs:
        if text is not None and "\\boxed" in text:
            return True
        rewarded = rewarded or (reward or 0.0) > 0
    return not rewarded


def same(answer: str, truth: str) -> bool:
    """Whether two answers are equal, as normalised text or as numbers."""
    a, b = normal(answer), normal(truth)
    if a == b:
        return True
    x, y = _value(a), _value(b)
    return x is not None and x == y


@lru_cache(maxsize=4096)
def normal(answer: str) -> str:
    """An answer without the differences that mean nothing."""
    answer = answer[:4096].strip()
    for noise in _NOISE:
        answer = answer.replace(noise, "")
    answer = answer.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    answer = _WRAPPER.sub(r"\1", answer)
    answer = re.sub(r"\s+", "", answer).rstrip(".")
    answer = re.sub(r"(?<=\d),(?=\d{3}(?:\D|\Z))", "", answer)
    answer = re.sub(r"\\frac(\d)(\d)", r"\\frac{\1}{\2}", answer)
    head, equals, tail = answer.rpartition("=")
    # "x=5" is the answer 5; an equation with more on its left side is not.
    return tail if equals and len(head) <= 2 else answer


@lru_cache(maxsize=4096)
def _value(answer: str) -> Fraction | None:
    fraction = _FRACTION.match(answer)
    if fraction:
        answer = f"{fraction[1]}/{fraction[2]}"
    try:
        if _PLAIN.match(answer):
            return Fraction(answer)
        top, slash, bottom = answer.partition("/")
        return Fraction(top) / Fraction(bottom) if slash and fraction else None
    except (ValueError, ZeroDivisionError):
        return None


@lru_cache(maxsize=1024)
def duty_of(role: str) -> Duty:
    """What a role is there for, by the well-known names; ``solve`` for any other."""
    return Workflow.of({role: 1}).roles[0].duty


def answers(role: str) -> bool:
    """Whether a role's box holds an answer to the problem (and not a choice or a verdict)."""
    return duty_of(role) in ("solve", "synthesize")
