"""Section "Texts": pairs of texts side by side, and a browser of all texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from roledrift.measure.catalogue import charted
from roledrift.records import Sample
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import (
    Block,
    Diffs,
    Note,
    Pairing,
    Prose,
    Section,
    TextBrowser,
)
from roledrift.report.texts.embedded_json import as_json, pack
from roledrift.report.texts.episodes import episodes, order
from roledrift.report.texts.excerpts import excerpt, flags, key
from roledrift.report.texts.role_classifier import RoleClassifier, train
from roledrift.report.texts.text_pairs import pairings_of_run, samples_around_onset

PAGE = 2_800_000
"""Bytes of a page: what the figures of its runs leave of that is for texts."""

BUDGET = 2_100_000
"""Most bytes of the browser of one run in the page."""

UNPACKED = 8_000_000
"""Most bytes of the browser once a page has unpacked it: it searches them at every key."""

LIMITS = (4_000, 2_400, 1_200, 800, 500, 300, 200, 160, 120)
"""Characters per text, the first that fits is taken."""

_ROW = 90
_POINT = 14
_OTHER = 300_000
_PROBED = 400_000
_PARTS = 16

PLACE = 40


def build(run: JudgedRun) -> Section:
    """Build the section."""
    if not run.samples and run.counted:
        note = Note(f"{len(run.counted)} texts are left out.")
        return Section("texts", "Texts", (note,), "left out")
    if not run.samples:
        note = Note(
            "No texts were kept. Give RoleBatch its text column, or call monitor.add_samples, with "
            "[sampling] per_role above 0."
        )
        return Section("texts", "Texts", (note,), "none kept")
    sampling = run.config.sampling
    steps = sorted({sample.step for sample in run.samples})
    kept = f"{run.texts} texts are kept, of which this report reads {len(run.samples)}"
    if run.texts <= len(run.samples):
        kept = f"{len(run.samples)} texts are kept"
    lead = (
        f"{kept}, from {len(steps)} steps ({steps[0]}–{steps[-1]}); "
        f"the sampler's setting is {sampling.per_role} per role and {sampling.canaries} followed "
        f"prompts every {'step' if sampling.every == 1 else f'{sampling.every} steps'}."
    )
    blocks: list[Block] = [Prose(lead)]
    wordless = [
        role for role in run.roles if not any(sample.role == role for sample in run.samples)
    ]
    if wordless:
        blocks.append(Note(f"No text of {', '.join(wordless)} was kept."))
    classifier = train(run.samples, run.roles, run.baseline[1] if run.baseline else None)
    pairings = pairings_of_run(run, classifier)
    blocks.append(Diffs(f"{run.key}-diffs", pairings))
    blocks.append(_browser(run, classifier, pairings))
    return Section("texts", "Texts", tuple(blocks), f"{run.texts:,} kept, of {len(steps)} steps")


def _browser(
    run: JudgedRun, classifier: RoleClassifier | None, pairings: Sequence[Pairing]
) -> TextBrowser:
    place = {role: index for index, role in enumerate(run.roles)}
    grouped = episodes(run.samples).values()
    alone = [sample for sample in run.samples if not (sample.prompt or sample.episode)]
    units = sorted([*grouped, *([sample] for sample in alone)], key=lambda unit: order(unit[0]))
    room = _room(run, pairings)
    everything = [sample for unit in units for sample in unit]
    # What fits at some length fits at every shorter one.
    fitting = bisect_left(LIMITS, True, key=lambda limit: _fits(everything, limit, room))
    limit = LIMITS[min(fitting, len(LIMITS) - 1)]
    kept = everything
    if fitting == len(LIMITS):
        kept = _evenly(units, _linked(run, pairings), limit, room)
    total = max(run.texts, len(everything))
    note = f"All {total:,} texts."
    if len(kept) < total:
        note = (
            f"{len(kept):,} of {total:,} texts, evenly spread, so that the page stays "
            "small; the run directory holds all."
        )
    if limit < LIMITS[0] and any(len(sample.text) > limit for sample in kept):
        note += f" Each is cut to {limit:,} characters for the same reason."
    kept = sorted(
        kept,
        key=lambda sample: (
            sample.step,
            sample.prompt,
            sample.episode,
            sample.turn,
            place.get(sample.role, 99),
            sample.slot,
        ),
    )
    items = tuple(excerpt(sample, limit, flagged=flags(sample, classifier)) for sample in kept)
    packed = _size(kept, limit) > room
    return TextBrowser(f"{run.key}-browser", note, items, run.roles, packed)


def _room(run: JudgedRun, pairings: Sequence[Pairing]) -> int:
    """Bytes for texts: the more roles, slots and steps are drawn, the fewer."""
    lines = sum(3 + (role.slots if role.slots > 1 else 0) for role in run.header.workflow.roles)
    drawn = lines * len(charted()) * min(len(run.records), 600) * _POINT
    pairs = [
        sum(len(text.encode()) * (2 if sign == "=" else 1) for sign, text in diff.pieces)
        + len(diff.left.prompt_text)
        + len(diff.right.prompt_text)
        for pairing in pairings
        for diff in pairing.diffs
    ]
    evidence = 3 * len(run.findings) * max(pairs, default=0)
    return min(max(PAGE - drawn - _OTHER - sum(pairs) - evidence, BUDGET // 6), BUDGET)


def _linked(run: JudgedRun, pairings: Sequence[Pairing]) -> frozenset[str]:
    """Keys of the texts that another part of the page leads to."""
    pairs = [(diff.left.key, diff.right.key) for pairing in pairings for diff in pairing.diffs]
    evidence = [
        (key(a), key(b))
        for finding in run.findings
        for a, b, _ in samples_around_onset(run, finding)
    ]
    return frozenset(name for names in (*pairs, *evidence) for name in names)


def _evenly(
    units: Sequence[Sequence[Sample]], linked: frozenset[str], limit: int, room: int
) -> list[Sample]:
    """As many whole episodes as there is room for, and what is linked to."""
    wanted = [any(key(sample) in linked for sample in unit) for unit in units]
    free = [unit for unit, known in zip(units, wanted, strict=True) if not known]
    always = [sample for unit, known in zip(units, wanted, strict=True) if known for sample in unit]
    count = len(free)
    while True:
        kept = [*always]
        for i in range(count):
            kept += free[(2 * i + 1) * len(free) // (2 * count)]
        if count == 0 or _fits(kept, limit, room):
            return kept
        count = count * 9 // 10


def _fits(samples: Sequence[Sample], limit: int, room: int) -> bool:
    """Whether the browser of ``samples`` has room in the page, if need be compressed."""
    size = _size(samples, limit)
    return size <= room or (size <= UNPACKED and size * _share(samples, limit) <= room)


def _share(samples: Sequence[Sample], limit: int) -> float:
    """What compression leaves of the browser of ``samples``, tried on some, with a margin."""
    count = min(len(samples), max(_PARTS, _PROBED // (limit + _ROW)))
    each = -(-count // _PARTS)
    starts = [part * len(samples) // _PARTS for part in range(_PARTS)]
    probed = [sample for start in starts for sample in samples[start : start + each]]
    texts = as_json(TextBrowser("", "", tuple(excerpt(sample, limit) for sample in probed)))
    return 1.05 * len(pack(texts)) / len(texts.encode("utf-8", "replace"))


def _size(samples: Sequence[Sample], limit: int) -> int:
    """Bytes in the page: prompts are there once, angle brackets are escapes."""
    prompts = {sample.prompt_text: len(sample.prompt_text[:1_200]) for sample in samples}
    texts = sum(len(sample.text[:limit].encode("utf-8", "replace")) for sample in samples)
    marks = sum(_escapes(sample.text[:limit]) for sample in samples)
    return texts + marks + sum(prompts.values()) + _ROW * len(samples)


def _escapes(text: str) -> int:
    return 5 * sum(text.count(mark) for mark in "<>&") + sum(text.count(mark) for mark in '\n"\\')
