r"""Grades mathematics as the released code of arXiv 2605.24202 does.

That code takes the last ``\boxed{}`` as it finds it and compares by the rules of PRM800K (Lightman
et al. 2023): the text normalised as for the MATH data set, or sympy, where fractions must be
reduced and an integer must be written as one. :mod:`mathruler` is a package of the same rules. A
test compares both with what that code did on recorded answers.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache

from reference_trainer.errors import SettingsError
from reference_trainer.tasks import Grade
from reference_trainer.tasks.math_answers import Verifier

_MARKED = re.compile(r"<\|begin_of_box\|>(.*?)<\|end_of_box\|>", re.DOTALL)
_BOX = "\\boxed"
_NEEDED = ("mathruler", "pylatexenc")


@cache
def released_verifier() -> Verifier:
    """The process that compares by these rules.

    Raises:
        SettingsError: If mathruler or what it needs is not installed.
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise SettingsError(
            "paper_compat.graders compares answers with the package mathruler: "
            f"pip install {' '.join(missing)}"
        )
    return Verifier(rules="prm800k")


def released_box(text: str) -> str | None:
    r"""Content of the last ``\boxed{...}``, None if its braces do not balance or there is none.

    Backslashes escape no brace, an earlier box does not stand in for the last, and ``\fbox`` is no
    box. GLM's box tokens come first.
    """
    if marked := _MARKED.findall(text):
        return str(marked[-1]).strip()
    start = text.rfind(_BOX)
    opening = start + len(_BOX)
    if start < 0 or text[opening : opening + 1] != "{":
        return None
    depth = 0
    for at in range(opening, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[opening + 1 : at]
    return None


def grade_released_math(text: str, truth: str, *, verifier: Verifier | None = None) -> Grade:
    """Grade the last box of ``text``, after the first ``</think>`` and before a second.

    Args:
        text: Output of a model.
        truth: The right answer, with or without a box.
        verifier: Where to compare; None for the process's own, with a time limit.
    """
    parts = text.split("</think>")
    answer = released_box(parts[1] if len(parts) > 1 else text)
    if _BOX in truth:
        truth = released_box(truth) or ""
    if answer is None or not truth:
        return Grade(False, answer or None)
    equal = answer == truth or (verifier or released_verifier()).equal(answer, truth)
    return Grade(bool(equal), answer or None)
