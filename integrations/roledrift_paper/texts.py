"""Texts in numbers: what the paper's tables 4 to 6 report per checkpoint and role."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from roledrift.measure.milestones import ONE_OF_THE_FIRST, PROBLEMS, milestones
from roledrift.measure.shape import (
    bare_stamp,
    boxed,
    code_fence,
    hedging,
    terse,
)
from roledrift.measure.verdicts import verdict
from roledrift.measure.wording import opener, overlap
from roledrift.records import Sample
from roledrift.report.judged_run import VALIDATION, JudgedRun

_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class Wording:
    """Texts of one role at one checkpoint.

    Attributes:
        n: Texts counted; ``problems``: different problems among them.
        length: Mean tokens, NaN where nobody counted them; ``p50`` and ``p95`` are lower quantiles.
        truncated: Share that the length limit cut off; likewise the other shares.
        jaccard: Mean 3-gram overlap between slots of one problem, as the statistic
            ``sibling_jaccard``; NaN with one slot.
        openers: Different first three words.
        fence: First-turn texts of a judge that hold a program, as a share; likewise ``stamp`` for
            bare stamps of at most 200 tokens, ``correct`` and ``unparseable`` for its verdict.
    """

    step: int
    role: str
    n: int
    problems: int
    length: float
    p50: float
    p95: float
    truncated: float
    boxed: float
    hedging: float
    terse: float
    verdict: float
    fence: float
    stamp: float
    correct: float
    unparseable: float
    jaccard: float
    openers: int


def wordings(run: JudgedRun) -> tuple[Wording, ...]:
    """One row per checkpoint and role, at up to three checkpoints of the run.

    The checkpoints are the paper's: early (halfway from the first to the best validation), best,
    and the last. Texts may not have been kept exactly there: the nearest step that has some counts.
    """
    kept = sorted({sample.step for sample in run.counted})
    if not kept:
        return ()
    placed: dict[tuple[int, str], list[Sample]] = defaultdict(list)
    for sample in run.counted:
        placed[sample.step, sample.role].append(sample)
    return tuple(
        wording(step, role, placed[step, role])
        for step in milestones(kept, run.total(VALIDATION))
        for role in run.roles
        if placed[step, role]
    )


def wording(step: int, role: str, samples: Sequence[Sample]) -> Wording:
    """Numbers on the texts of one role; only the first turn, and the first 100 problems.

    Texts that were kept for another reason (the longest, a truncated one) are no picture of the
    rest: they do not count where those of the first problems were kept.
    """
    samples = [sample for sample in samples if ONE_OF_THE_FIRST in sample.flags] or samples
    order = sorted({sample.prompt or sample.episode for sample in samples})[:PROBLEMS]
    shown = set(order)
    first = min(sample.turn for sample in samples)
    counted_samples = [
        sample
        for sample in samples
        if sample.turn == first and (sample.prompt or sample.episode) in shown
    ]
    texts = [sample.text[:_LIMIT] for sample in counted_samples]
    tokens = sorted(sample.tokens for sample in counted_samples)
    counted = any(tokens)
    verdicts = [verdict(text) for text in texts]
    stamps = [
        sample.tokens <= 200 and bare_stamp(text)
        for sample, text in zip(counted_samples, texts, strict=True)
    ]

    def share(flags: Sequence[bool]) -> float:
        return sum(flags) / len(flags) if flags else math.nan

    return Wording(
        step=step,
        role=role,
        n=len(counted_samples),
        problems=len(order),
        length=sum(tokens) / len(tokens) if counted else math.nan,
        p50=float(_quantile(tokens, 0.5)) if counted else math.nan,
        p95=float(_quantile(tokens, 0.95)) if counted else math.nan,
        truncated=share([sample.finish == "length" for sample in counted_samples]),
        boxed=share([boxed(text) for text in texts]),
        hedging=share([hedging(text) for text in texts]),
        terse=share(
            [
                terse(text, sample.tokens)
                for sample, text in zip(counted_samples, texts, strict=True)
            ]
        )
        if counted
        else math.nan,
        verdict=share([verdict is not None for verdict in verdicts]),
        fence=share([code_fence(text) for text in texts]),
        stamp=share(stamps),
        correct=share([verdict is True for verdict in verdicts]),
        unparseable=share([verdict is None for verdict in verdicts]),
        jaccard=_overlap(counted_samples),
        openers=len({opener(text) for text in texts} - {""}),
    )


def _quantile(ordered: Sequence[int], q: float) -> int:
    return ordered[max(math.ceil(q * len(ordered)) - 1, 0)]


def _overlap(samples: Sequence[Sample]) -> float:
    """Averaged within an episode of a problem, then over episodes."""
    slots: dict[tuple[str, str], dict[int, Sample]] = defaultdict(dict)
    for sample in samples:
        slots[sample.prompt, sample.episode].setdefault(sample.slot, sample)
    means = []
    for by_slot in slots.values():
        mean = overlap(combinations([by_slot[slot].text for slot in sorted(by_slot)], 2))
        if not math.isnan(mean):
            means.append(mean)
    return sum(means) / len(means) if means else math.nan
