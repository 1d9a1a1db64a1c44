"""Healthy runs that learn show the signs of collapse, too."""

from __future__ import annotations

from itertools import chain

import pytest

from roledrift.detect.detectors import diversity_collapse, entropy_collapse, lazy_role
from roledrift.workflow import VOTING
from tests.detect.healthy import Run
from tests.detect.judging import judge

CARDS = (entropy_collapse.CARD, diversity_collapse.CARD, lazy_role.CARD)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_healthy_runs_that_learn_are_quiet(correlation: float) -> None:
    alarmed = 0
    for seed in range(25):
        run = Run(seed, correlation, steps=100).records()
        alerts = chain.from_iterable(judge(card, run, VOTING)[0] for card in CARDS)
        told = list(alerts)
        assert not [one for one in told if one.severity == "failing"]
        alarmed += bool(told)
    assert alarmed <= 1
