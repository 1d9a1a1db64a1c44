"""Texts: what every role wrote, pairs side by side, and all of it to search."""

from __future__ import annotations

from collections.abc import Sequence

from roledrift.records import Sample
from roledrift.report.excerpts import excerpt, flags, of_role, over_time
from roledrift.report.likeness import Likeness, learn
from roledrift.report.model import Block, Browser, Diffs, Excerpt, Excerpts, Note, Prose, Section
from roledrift.report.pairings import of_run
from roledrift.report.sections.names import QUANTITIES
from roledrift.report.view import View

PAGE = 2_800_000
"""Bytes of the page of one run: what its figures leave of that is for texts."""

BUDGET = 2_100_000
"""Most bytes of the browser of one run in the page."""

LIMITS = (1_200, 800, 500, 300, 200, 160, 120)
"""Characters per text, the first that fits is taken."""

_ROW = 90
_POINT = 14
_OTHER = 400_000


def build(view: View) -> Section:
    """The texts section."""
    if not view.samples and view.counted:
        return Section("texts", "Texts", (Note(f"{len(view.counted)} texts are left out."),))
    if not view.samples:
        note = Note(
            "No texts were kept. Give RoleBatch its text column, or call monitor.add_samples, with "
            "[sampling] per_role above 0."
        )
        return Section("texts", "Texts", (note,))
    sampling = view.config.sampling
    steps = sorted({one.step for one in view.samples})
    kept = f"{view.texts} texts are kept, of which this report reads {len(view.samples)}"
    if view.texts <= len(view.samples):
        kept = f"{len(view.samples)} texts are kept"
    lead = (
        f"{kept}, from {len(steps)} steps ({steps[0]}–{steps[-1]}); "
        f"the sampler's setting is {sampling.per_role} per role and {sampling.canaries} followed "
        f"prompts every {'step' if sampling.every == 1 else f'{sampling.every} steps'}."
    )
    blocks: list[Block] = [Prose(lead)]
    for role in view.roles:
        items = over_time(view, role)
        blocks.append(Excerpts(role, items) if items else Note(f"No text of {role} was kept."))
    likeness = learn(view.samples, view.roles, view.baseline[1] if view.baseline else None)
    blocks.append(Diffs(f"{view.key}-diffs", of_run(view, likeness)))
    blocks.append(_browser(view, likeness))
    return Section("texts", "Texts", tuple(blocks))


def _browser(view: View, likeness: Likeness | None) -> Browser:
    everything = [one for role in view.roles for one in of_role(view, role)]
    room = _room(view)
    limit = next((limit for limit in LIMITS if _size(everything, limit) <= room), LIMITS[-1])
    kept = _evenly(everything, limit, room)
    whole = max(view.texts, len(everything))
    note = f"All {whole} texts."
    if len(kept) < whole:
        note = (
            f"{len(kept)} of {whole} texts, evenly spread, so that the page stays "
            "small; the run directory holds all."
        )
    if limit < LIMITS[0]:
        note += f" Each is cut to {limit} characters for the same reason."
    items = tuple(_entry(one, likeness, limit) for one in kept)
    return Browser(f"{view.key}-browser", note, items, view.roles)


def _entry(sample: Sample, likeness: Likeness | None, limit: int) -> Excerpt:
    return excerpt(sample, limit=limit, flagged=flags(sample, likeness))


def _room(view: View) -> int:
    """Bytes for texts: the more roles, slots and steps are drawn, the fewer."""
    lines = sum(3 + (role.slots if role.slots > 1 else 0) for role in view.header.workflow.roles)
    drawn = lines * len(QUANTITIES) * min(len(view.records), 600) * _POINT
    return min(max(PAGE - drawn - _OTHER, BUDGET // 6), BUDGET)


def _evenly(samples: Sequence[Sample], limit: int, room: int) -> Sequence[Sample]:
    """As many of ``samples`` as there is room for."""
    size = _size(samples, limit)
    if size <= room:
        return samples
    count = max(1, int(len(samples) * room / size))
    while True:
        kept = [samples[(2 * i + 1) * len(samples) // (2 * count)] for i in range(count)]
        if count == 1 or _size(kept, limit) <= room:
            return kept
        count = max(1, count * 9 // 10)


def _size(samples: Sequence[Sample], limit: int) -> int:
    """Bytes in the page: prompts are there once, angle brackets are escapes."""
    prompts = {one.prompt_text: len(one.prompt_text[:1_200]) for one in samples}
    texts = sum(len(one.text[:limit].encode("utf-8", "replace")) for one in samples)
    marks = sum(_escapes(one.text[:limit]) for one in samples)
    return texts + marks + sum(prompts.values()) + _ROW * len(samples)


def _escapes(text: str) -> int:
    return 5 * sum(text.count(mark) for mark in "<>&") + sum(text.count(mark) for mark in '\n"\\')
