"""Who of an episode was right: each role's output graded again by what the role is there for.

Trainers of multi-agent workflows often give every role the outcome of the whole workflow as its
reward; the dump then says nothing about the roles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from roledrift.ingest.grade import answer_text, duty_of, is_right

CORRECT = "correct"
FALLBACK = "fallback"

_TRUTHS = ("final_answer", "ground_truth", "answer", "gold", "target")
_INDEX_BOX = re.compile(r"\\boxed\s*\{\s*(\d{1,4})\s*\}")
_DIGIT = re.compile(r"(?<!\d)[1-9](?!\d)")
_VERDICT = re.compile(r"\\boxed\s*\{\s*(correct|incorrect)\s*\}", re.IGNORECASE)


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
        truth = answer_text(task.get(name))
        if truth is not None:
            return truth
    inner = task.get("reward_model")
    return truth_of(inner) if isinstance(inner, Mapping) else None


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
    match = _VERDICT.search(text)
    return None if match is None else match[1].lower() == "correct"


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
        own: dict[str, bool] = {}
        if text is not None and what == "select" and latest:
            choice, stamped = selected(text, len(latest))
            own[FALLBACK] = not stamped
            if latest[choice] is not None:
                own[CORRECT] = bool(latest[choice])
        elif text is not None and what == "judge" and latest and latest[-1] is not None:
            own[CORRECT] = verdict(text) == latest[-1]
        elif text is not None and what in ("solve", "synthesize") and truth is not None:
            own[CORRECT] = is_right(text, truth)
        if what == "solve":
            if role != before:
                latest = []
            latest.append(own.get(CORRECT))
        before = role
        facts.append(own)
    return facts
