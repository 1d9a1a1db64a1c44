"""Which texts a report shows, and how much of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from roledrift.records import Sample
from roledrift.report.model import Cell, Excerpt, Pair
from roledrift.report.numbers import cell
from roledrift.report.sanitise import cut
from roledrift.report.view import Finding, View

TEXT_LIMIT = 2_000
"""Characters of an answer that are shown."""

PROMPT_LIMIT = 1_200
"""Characters of a prompt that are shown."""


def excerpt(sample: Sample, when: str = "", limit: int = TEXT_LIMIT) -> Excerpt:
    """A stored text, made harmless and cut to a readable length."""
    text, left_out = cut(sample.text, limit)
    prompt_text, prompt_left_out = cut(sample.prompt_text, PROMPT_LIMIT)
    if prompt_left_out:
        prompt_text += f"\n[{prompt_left_out}]"
    return Excerpt(
        step=sample.step,
        role=sample.role,
        text=text,
        when=when,
        slot=sample.slot,
        turn=sample.turn,
        prompt=sample.prompt,
        prompt_text=prompt_text,
        tokens=sample.tokens,
        finish=sample.finish,
        reward=Cell("–") if math.isnan(sample.reward) else cell(sample.reward),
        flags=sample.flags,
        cut=left_out,
    )


def order(sample: Sample) -> tuple[int, str, int, int, str]:
    """Sorting key that makes the choice of texts independent of file order."""
    return (sample.step, sample.prompt, sample.slot, sample.turn, sample.episode)


def of_role(view: View, role: str) -> list[Sample]:
    """Texts of one role, oldest first."""
    return sorted((one for one in view.samples if one.role == role), key=order)


def pairs(view: View, finding: Finding, limit: int = 3) -> tuple[Pair, ...]:
    """Texts of the alerted role before and after the onset, on the same prompt where there is one.

    The text before is the last before the onset; the text after is the first at or after the alert
    (the finding is established there), else the last after the onset.
    """
    texts = of_role(view, finding.alert.role)
    before = [one for one in texts if one.step < finding.alert.onset]
    after = [one for one in texts if one.step >= finding.alert.onset]
    found: list[Pair] = []
    common = {one.prompt for one in before} & {one.prompt for one in after} - {""}
    for prompt in sorted(common)[:limit]:
        found.append(
            _pair(
                [one for one in before if one.prompt == prompt],
                [one for one in after if one.prompt == prompt],
                finding.raised,
            )
        )
    used = {(pair.before.step, pair.before.prompt) for pair in found}
    used |= {(pair.after.step, pair.after.prompt) for pair in found}
    rest_before = [one for one in before if (one.step, one.prompt) not in used][::-1]
    rest_after = [one for one in after if (one.step, one.prompt) not in used]
    late = [one for one in rest_after if one.step >= finding.raised] or rest_after[::-1]
    for a, b in zip(rest_before, late, strict=False):
        if len(found) == limit:
            break
        found.append(Pair(excerpt(a, "before onset"), excerpt(b, "after onset"), False))
    return tuple(found)


def _pair(before: Sequence[Sample], after: Sequence[Sample], raised: int) -> Pair:
    late = [one for one in after if one.step >= raised]
    b = late[0] if late else after[-1]
    same_slot = [one for one in before if one.slot == b.slot]
    a = (same_slot or before)[-1]
    return Pair(excerpt(a, "before onset"), excerpt(b, "after onset"), True)


def over_time(view: View, role: str, each: int = 2) -> tuple[Excerpt, ...]:
    """Texts of one role: first, around the onset (else from the middle) and last."""
    texts = of_role(view, role)
    onsets = [one.alert.onset for one in view.findings if one.alert.role == role]
    picked: dict[int, str] = {}

    def pick(indices: Sequence[int], when: str) -> None:
        for index in indices:
            picked.setdefault(index, when)

    everything = range(len(texts))
    pick(everything[:each], "first")
    if onsets:
        before = [i for i in everything if texts[i].step < onsets[0]]
        after = [i for i in everything if texts[i].step >= onsets[0]]
        pick(before[-each:], "before onset")
        pick(after[:each], "after onset")
    elif texts:
        pick([len(texts) // 2], "middle")
    pick(everything[-each:], "last")
    return tuple(excerpt(texts[index], picked[index]) for index in sorted(picked))
