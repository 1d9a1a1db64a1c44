from __future__ import annotations

from dataclasses import replace

import pytest
from roledrift_paper.pairs import blocks, paired

from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Note, Table
from roledrift.report.sweep.summary import Summary
from tests.report.paper.summaries import summary_of

PEAKS = {"IP": (0.60, 0.70, 0.65), "SP": (0.50, 0.63, 0.52)}


@pytest.fixture
def runs(failing: JudgedRun) -> list[Summary]:
    one = summary_of(failing)
    return [
        replace(
            one, key=f"{policy}{seed}", name=f"{policy}{seed}", policy=policy, seed=seed,
            notes={}, workflow="voting", scale="M", validation={0: 0.3, 10: peak, 20: 0.4},
        )
        for policy, peaks in PEAKS.items()
        for seed, peak in enumerate(peaks)
    ]  # fmt: skip


def test_differences_are_those_of_the_seeds(runs: list[Summary]) -> None:
    (table,) = blocks(runs)
    assert isinstance(table, Table)
    ((*_, count, peak, final),) = table.rows
    assert count.value == 3
    # 10, 7 and 13 points: mean 10, sd 3, t(0.975, 2) * 3 / sqrt(3) = 7.452
    assert peak.value == pytest.approx(10.0)
    assert (peak.text, peak.note) == ("+10.0", "95 %: +2.5 to +17.5")
    assert (final.text, final.note) == ("+0.0", "the same in all pairs")


def test_only_runs_with_the_same_seed_are_compared(runs: list[Summary]) -> None:
    isolated, shared = runs[:3], runs[3:]
    assert [(a.seed, b.seed) for a, b in paired(isolated[1:], shared)] == [(1, 1), (2, 2)]
    assert paired(isolated, [replace(one, seed=None) for one in shared]) == []
    twice = [*isolated, replace(isolated[0], name="again")]
    assert [a.seed for a, _ in paired(twice, shared)] == [1, 2]
    (table,) = blocks([*isolated[1:], *shared])
    assert isinstance(table, Table)
    assert "too few pairs" in table.rows[0][4].note


def test_without_pairs_it_says_what_is_missing(runs: list[Summary]) -> None:
    assert blocks(runs[:3]) == ()
    (note,) = blocks([*runs[:3], replace(runs[3], seed=9)])
    assert isinstance(note, Note)
    assert blocks([replace(one, notes={"stress": "hot"}) for one in runs]) == ()
