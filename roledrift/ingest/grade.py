r"""Who of an episode was right, from what they wrote.

Trainers of multi-agent workflows often give every role the outcome of the whole workflow as its
reward; the dump then says nothing about the roles. Where there is a reference answer, boxed answers
are compared with it here. The comparison is by normalised text and by value, without a computer
algebra system: an answer that only algebra could tell equal counts as wrong, the same way all run
long. Code is not graded: that would mean running it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from roledrift.measure.shape import boxes
from roledrift.workflow import Duty, Workflow

CORRECT = "correct"
FALLBACK = "fallback"

_TRUTHS = ("final_answer", "ground_truth", "answer", "gold", "target")
_INDEX_BOX = re.compile(r"\\boxed\s*\{\s*(\d{1,4})\s*\}")
_DIGIT = re.compile(r"(?<!\d)[1-9](?!\d)")
_VERDICT = re.compile(r"\\boxed\s*\{\s*(correct|incorrect)\s*\}", re.IGNORECASE)
_WRAPPER = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\frac\{(-?[\d.]+)\}\{(-?[\d.]+)\}\Z")
_PLAIN = re.compile(r"-?\d{1,40}(?:\.\d{1,40})?(?:/\d{1,40})?\Z")
_NOISE = ("\\left", "\\right", "\\!", "\\,", "\\;", "\\ ", "$", "\\%", "%", "^\\circ", "^{\\circ}")
_LONGEST_TRUTH = 400


def truth_of(task: object) -> str | None:
    """The reference answer of a task; None if there is none that a boxed answer can equal."""
    if isinstance(task, str):
        try:
            task = json.loads(task)
        except (ValueError, RecursionError):
            return None
    if not isinstance(task, Mapping):
        return None
    for name in _TRUTHS:
        found = answer_text(task.get(name))
        if found is not None:
            return found
    inner = task.get("reward_model")
    return truth_of(inner) if isinstance(inner, Mapping) else None


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


def right(text: str, truth: str) -> bool:
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
    found = _FRACTION.match(answer)
    if found:
        answer = f"{found[1]}/{found[2]}"
    try:
        if _PLAIN.match(answer):
            return Fraction(answer)
        top, slash, bottom = answer.partition("/")
        return Fraction(top) / Fraction(bottom) if slash and found else None
    except (ValueError, ZeroDivisionError):
        return None


def selected(text: str, candidates: int) -> tuple[int, bool]:
    """Which candidate a selecting role chose, from 0, and whether by a boxed number.

    The first boxed number counts if it names a candidate; else the first digit on its own; else the
    first candidate, which is what workflows of this kind fall back to.
    """
    box = _INDEX_BOX.search(text)
    if box and 1 <= int(box[1]) <= candidates:
        return int(box[1]) - 1, True
    digit = _DIGIT.search(text)
    if digit and 1 <= int(digit[0]) <= candidates:
        return int(digit[0]) - 1, False
    return 0, False


def verdict(text: str) -> bool | None:
    """What a judging role decided; None if it stamped nothing."""
    found = _VERDICT.search(text)
    return None if found is None else found[1].lower() == "correct"


@lru_cache(maxsize=1024)
def duty_of(role: str) -> Duty:
    """What a role is there for, by the well-known names; ``solve`` for any other."""
    return Workflow.of({role: 1}).roles[0].duty


def answers(role: str) -> bool:
    """Whether a role's box holds an answer to the problem (and not a choice or a verdict)."""
    return duty_of(role) in ("solve", "synthesize")


def regrade(outputs: Sequence[tuple[str, str | None]], truth: str | None) -> list[dict[str, bool]]:
    """Facts about each output of an episode: ``correct`` and, for selecting roles, ``fallback``.

    Args:
        outputs: Role and text in the order of time.
        truth: Reference answer; None grades nobody.

    Returns:
        One mapping per output; a fact that cannot be known is absent.
    """
    facts: list[dict[str, bool]] = []
    latest: list[bool | None] = []
    before = ""
    for role, text in outputs:
        what = duty_of(role)
        mine: dict[str, bool] = {}
        if text is not None and what == "select" and latest:
            choice, stamped = selected(text, len(latest))
            mine[FALLBACK] = not stamped
            if latest[choice] is not None:
                mine[CORRECT] = bool(latest[choice])
        elif text is not None and what == "judge" and latest and latest[-1] is not None:
            mine[CORRECT] = verdict(text) == latest[-1]
        elif text is not None and what in ("solve", "synthesize") and truth is not None:
            mine[CORRECT] = right(text, truth)
        if what == "solve":
            if role != before:
                latest = []
            latest.append(mine.get(CORRECT))
        before = role
        facts.append(mine)
    return facts
