"""Texts: what every role wrote, first, around the onset and last."""

from __future__ import annotations

from roledrift.report.excerpts import excerpt, of_role, over_time
from roledrift.report.model import Block, Browser, Excerpt, Excerpts, Note, Prose, Section
from roledrift.report.view import View

BUDGET = 400_000
"""Characters of text in the browser of one run: keeps the page within its size."""

_BROWSED = 1_200


def build(view: View) -> Section:
    """The texts section."""
    if not view.samples:
        note = Note(
            "No texts were kept. Give RoleBatch its text column, or call monitor.add_samples, with "
            "[sampling] per_role above 0."
        )
        return Section("texts", "Texts", (note,))
    sampling = view.config.sampling
    steps = sorted({one.step for one in view.samples})
    lead = (
        f"{len(view.samples)} texts from {len(steps)} steps ({steps[0]}–{steps[-1]}) are kept; "
        f"the sampler's setting is {sampling.per_role} per role and {sampling.canaries} followed "
        f"prompts every {'step' if sampling.every == 1 else f'{sampling.every} steps'}."
    )
    blocks: list[Block] = [Prose(lead)]
    for role in view.roles:
        items = over_time(view, role)
        blocks.append(Excerpts(role, items) if items else Note(f"No text of {role} was kept."))
    blocks.append(_browser(view))
    return Section("texts", "Texts", tuple(blocks))


def _browser(view: View) -> Browser:
    everything = [
        excerpt(sample, limit=_BROWSED) for role in view.roles for sample in of_role(view, role)
    ]
    kept = everything
    while sum(_size(one) for one in kept) > BUDGET and len(kept) > 1:
        kept = kept[::2]
    note = f"All {len(everything)} texts."
    if len(kept) < len(everything):
        note = (
            f"{len(kept)} of {len(everything)} texts, evenly spread, so that the page stays "
            "small; the run directory holds all."
        )
    return Browser(f"{view.key}-browser", note, tuple(kept))


def _size(one: Excerpt) -> int:
    return len(one.text) + len(one.prompt_text) + 120
