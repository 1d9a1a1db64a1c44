from __future__ import annotations

import numpy as np
import pytest
from roledrift.detect.diversity_collapse import DiversityCollapse

from roledrift.config import Config
from roledrift.judgement import Verdict
from roledrift.records import Stat, StepRecord
from roledrift.workflow import VOTING
from tests.detect.healthy import Run


def judge(records: list[StepRecord]) -> list[Verdict]:
    detector = DiversityCollapse(VOTING, Config())
    return [v for one in records for v in detector.update(one) if v.role == "generator"]


def made(
    agreement: float, overlap: float, openers: float, accuracy: float = 0.4
) -> list[StepRecord]:
    """Fifteen ordinary records, then fifteen with these numbers."""
    rows = [(0.3, 0.4, 18.0, 0.4)] * 15 + [(agreement, overlap, openers, accuracy)] * 15
    return [
        StepRecord(
            step,
            groups={
                "generator": {
                    "wrong_agreement": Stat(40, a),
                    "wrong_jaccard": Stat(40, j),
                    "openers": Stat(192, o),
                }
            },
            totals={"accuracy": solved},
        )
        for step, (a, j, o, solved) in enumerate(rows)
    ]


def test_the_same_wrong_answers_in_the_same_words_are_a_collapse() -> None:
    found = judge(made(0.9, 0.8, 18.0))[-1]
    assert (found.state, found.finding, found.onset) == ("drift", "diversity_collapse", 15)
    assert found.statistic == "wrong_agreement"
    assert found.reason.startswith("2 of 3 signs: wrong_agreement 0.3 -> 0.9; wrong_jaccard")


def test_alike_without_the_same_mistakes_is_the_lesser_finding() -> None:
    found = judge(made(0.3, 0.9, 4.0))[-1]
    assert (found.state, found.finding) == ("drift", "uniform_siblings")


def test_agreement_that_pays_is_only_watched() -> None:
    assert judge(made(0.9, 0.8, 4.0, accuracy=0.9))[-1].state == "watch"


def test_fewer_openings_alone_are_nothing() -> None:
    assert judge(made(0.3, 0.4, 4.0))[-1].state == "ok"


def test_one_slot_has_no_siblings_and_without_texts_it_says_what_is_missing() -> None:
    verdicts = DiversityCollapse(VOTING, Config()).update(StepRecord(0))
    assert [one.state for one in verdicts] == ["no verdict"] * 2
    assert "needs texts" in verdicts[0].reason
    assert "does not apply" in verdicts[1].reason


def test_few_wrong_pairs_are_pooled_before_they_are_judged() -> None:
    few = [
        StepRecord(step, groups={"generator": {"wrong_agreement": Stat(3, step % 2)}})
        for step in range(60)
    ]
    assert {one.state for one in judge(few)} == {"no verdict"}


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_the_delay_on_a_planted_collapse(correlation: float) -> None:
    """Same wrong answers 0.3 -> 0.75, overlap 0.4 -> 0.75 within ten steps, no gain."""
    delays = []
    for seed in range(20):
        run = Run(seed, correlation)
        run.solve(np.clip(0.45 + run.wander(0.04), 0.02, 0.98))
        run.agreement = np.clip(run.agreement + 0.45 * run.ramp(50, 10), 0, 0.98)
        run.overlap = np.clip(run.overlap + 0.35 * run.ramp(50, 10), 0, 1)
        detector = DiversityCollapse(VOTING, Config())
        drifts = [
            record.step
            for record in run.records()
            for one in detector.update(record)
            if one.finding == "diversity_collapse"
        ]
        assert all(step >= 50 for step in drifts)
        delays += [drifts[0] - 50] if drifts else []
    # At a correlation of 0.8 a wandering series may hide it: its spread is learned.
    assert len(delays) >= 18
    assert np.median(delays) <= 15
