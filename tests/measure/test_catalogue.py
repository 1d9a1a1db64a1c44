"""Which probes and statistics there are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roledrift.measure.catalogue import charted, probes_for, shipped, statistics
from roledrift.spans import SpanTable
from roledrift.sums import Moments
from roledrift.workflow import VOTING

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
PART = """
from roledrift.measure.cards import ProbeCard, Statistic
CARD = ProbeCard(
    "loudness", None, (Statistic("loudness", "Loudness", "", "f"), Statistic("length", "", "", "f"))
)
"""


def test_what_has_a_chart_says_what_healthy_is_and_what_supplies_it() -> None:
    for statistic in charted():
        assert statistic.healthy
        assert statistic.supply


def test_every_statistic_has_a_formula_and_a_line_in_the_documentation() -> None:
    page = PAGE.read_text()
    names = [one.name for card in shipped() for one in card.statistics]
    assert len(set(names)) == len(names)
    for name in names:
        assert statistics()[name].formula
        assert f"`{name}`" in page or f"`K.{name.partition('.')[2]}`" in page


def test_a_share_is_one() -> None:
    draw = np.random.default_rng(0)
    spans = SpanTable(
        VOTING.role_names,
        draw.integers(0, 2, 40),
        slot_N=draw.integers(0, 3, 40),
        episode_N=np.arange(40) // 4,
        group_N=np.arange(40) // 8,
        tokens_N=draw.integers(1, 100, 40),
        truncated_N=draw.random(40) < 0.5,
        reward_N=draw.integers(0, 2, 40).astype(np.float64),
        text_N=("a \\boxed{2}", "wait", "\\boxed{Correct}", "```python\na\nb\nc\n```") * 10,
    )
    for probe in probes_for("full", VOTING):
        for key, value in probe.measure(spans).items() if probe.needs <= spans.present else ():
            known = statistics().get(key.name)
            if known is not None and known.share and not isinstance(value, Moments):
                assert 0 <= value.total / value.n <= 1, key


def test_one_of_another_distribution_adds_to_those_that_ship(install: Any) -> None:
    before = statistics()["length"]
    install("loud", {"probes": {"loudness": "loud_card:CARD"}}, code={"loud_card": PART})
    assert statistics()["loudness"].title == "Loudness"
    assert statistics()["length"] is before


@pytest.mark.parametrize("tier", ["economy", "full"])
def test_names_of_probes_are_those_of_their_cards(tier: Any) -> None:
    assert {probe.name for probe in probes_for(tier, VOTING)} <= {card.name for card in shipped()}
