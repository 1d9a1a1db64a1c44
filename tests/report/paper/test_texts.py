from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from roledrift_paper.texts import wording

from roledrift.measure.siblings import sibling_jaccard
from roledrift.records import Sample
from roledrift.spans import SpanTable
from roledrift.sums import Key
from roledrift.workflow import Role, Workflow


def sample(text: str, tokens: int, *, slot: int = 0, prompt: str = "p", finish: str = "stop",
           turn: int = 0) -> Sample:  # fmt: skip
    return Sample(
        5,
        "generator",
        text,
        slot,
        turn,
        prompt=prompt,
        tokens=tokens,
        finish=finish,  # type: ignore[arg-type]
    )


def test_numbers_by_hand() -> None:
    texts = [
        sample(r"a b c d \boxed{1}", 10),
        sample("a b c e wait", 40, slot=1, finish="length"),
        sample("later turn", 999, turn=1),
    ]
    one = wording(5, "generator", texts)
    assert (one.n, one.problems) == (2, 1)
    assert (one.length, one.p50, one.p95) == (25.0, 10.0, 40.0)
    assert (one.truncated, one.boxed, one.hedging, one.terse) == (0.5, 0.5, 0.5, 0.5)
    # Of three 3-grams each, "a b c" is shared.
    assert one.jaccard == 1 / 5
    assert one.openers == 1


def test_a_judge_by_hand() -> None:
    fence = "```python\na\nb\nc\n```"
    texts = [
        sample(r"\boxed{Correct}", 4, prompt="a"),
        sample(fence + r" \boxed{incorrect}", 90, prompt="b"),
        sample("no idea", 3, prompt="c"),
        sample(r"\boxed{Correct}", 300, prompt="d"),
    ]
    one = wording(5, "evaluator", texts)
    assert (one.fence, one.stamp, one.correct, one.unparseable) == (0.25, 0.25, 0.5, 0.25)
    assert math.isnan(one.jaccard)


def test_only_the_first_problems_count_where_they_were_kept() -> None:
    """The longest text of a step is no picture of the rest."""
    texts = [
        replace(sample("a", 10), flags=("problem",)),
        replace(sample("b", 20, prompt="q"), flags=("canary", "problem")),
        replace(sample("c" * 90, 900, prompt="r"), flags=("longest",)),
    ]
    assert wording(5, "generator", texts).length == 15


def test_without_token_counts_nothing_is_said_of_lengths() -> None:
    one = wording(5, "generator", [sample(r"\boxed{1}", 0), sample("a b", 0, prompt="q")])
    assert all(map(math.isnan, (one.length, one.p50, one.p95, one.terse)))
    assert one.stamp == 0.5


def test_the_overlap_is_that_of_the_statistic() -> None:
    texts = (r"So \boxed{2} it is.", r"so \boxed{3} it is.", "so it is, \n it is so", "")
    table = SpanTable(
        ("generator",), np.zeros(4, int), episode_N=np.zeros(4, int), slot_N=np.arange(4),
        text_N=texts,
    )  # fmt: skip
    workflow = Workflow("w", (Role("generator", 4),), ("p",))
    sums = sibling_jaccard(workflow).measure(table)
    stored = [sample(text, 1, slot=slot) for slot, text in enumerate(texts)]
    one = wording(5, "generator", stored)
    assert one.jaccard == sums[Key("generator", "sibling_jaccard")].total
