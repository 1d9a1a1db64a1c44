"""Which texts a report shows, and how much of each."""

from __future__ import annotations

import hashlib
import math

from roledrift.measure.shape import hedging, terse
from roledrift.records import Sample
from roledrift.report.cells import UNKNOWN, Cell
from roledrift.report.judged_run import JudgedRun
from roledrift.report.numbers import cell
from roledrift.report.sanitise import cut
from roledrift.report.texts.episodes import order
from roledrift.report.texts.role_classifier import RoleClassifier
from roledrift.report.texts.text_blocks import Excerpt

PROMPT_LIMIT = 1_200
"""Characters of a prompt that are shown."""

_SHAPE_LIMIT = 4_000


def excerpt(
    sample: Sample,
    limit: int,
    *,
    when: str = "",
    flagged: tuple[tuple[str, ...], str, float | None] | None = None,
) -> Excerpt:
    """Make a stored text harmless and cut it to a readable length.

    Args:
        sample: The text.
        limit: Characters of it.
        when: Why it is shown.
        flagged: What :func:`flags` says of it; None for the flags that it was kept with.
    """
    words, near, away = flagged or (sample.flags, "", None)
    text, left_out = cut(sample.text, limit)
    prompt_text, prompt_left_out = cut(sample.prompt_text, PROMPT_LIMIT)
    if prompt_left_out:
        prompt_text += f"\n[{prompt_left_out}]"
    return Excerpt(
        step=sample.step,
        role=sample.role,
        text=text,
        key=key(sample),
        when=when,
        slot=sample.slot,
        turn=sample.turn,
        prompt=sample.prompt,
        prompt_text=prompt_text,
        episode=sample.episode,
        tokens=sample.tokens,
        finish=sample.finish,
        reward=_cell(sample.reward),
        advantage=_cell(sample.advantage),
        flags=words,
        cut=left_out,
        near=near,
        away=away,
    )


def _cell(value: float) -> Cell:
    return UNKNOWN if math.isnan(value) else cell(value)


def key(sample: Sample) -> str:
    """Name a span by a hash that does not depend on what else is in the report."""
    place = (sample.step, sample.role, sample.slot, sample.turn, sample.prompt, sample.episode)
    name = "|".join(str(part) for part in place)
    # Without the name of its episode only the text can tell apart what one slot wrote on a prompt.
    if not sample.episode:
        name += "|" + sample.text[:200]
    return hashlib.sha1(name.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:8]


def flags(
    sample: Sample, classifier: RoleClassifier | None
) -> tuple[tuple[str, ...], str, float | None]:
    """Return the flags of a text, the role it reads like, and by how much."""
    words = list(sample.flags)
    text = sample.text[:_SHAPE_LIMIT]
    if terse(text, sample.tokens):
        words.append("terse")
    if hedging(text):
        words.append("hedging")
    if sample.finish == "length":
        words.append("truncated")
    if classifier is None:
        return tuple(dict.fromkeys(words)), "", None
    near, away = classifier.nearest(text, sample.role)
    if near and near != sample.role and sample.step > classifier.until:
        words.append("imposter")
    return tuple(dict.fromkeys(words)), near, None if math.isnan(away) else away


def of_role(run: JudgedRun, role: str) -> list[Sample]:
    """Return the texts of one role, oldest first."""
    return sorted((sample for sample in run.samples if sample.role == role), key=order)
