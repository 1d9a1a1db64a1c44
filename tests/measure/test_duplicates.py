from __future__ import annotations

from dataclasses import replace

import numpy as np

from roledrift.measure.duplicates import duplicates
from roledrift.spans import SpanTable
from roledrift.sums import Key, Mean
from roledrift.workflow import VOTING

TABLE = SpanTable(
    VOTING.role_names,
    np.array([0, 0, 0, 1]),
    slot_N=np.array([0, 1, 2, 0]),
    turn_N=np.zeros(4, int),
    episode_N=np.zeros(4, int),
    tokens_N=np.array([5, 6, 7, 2]),
    slots=(3, 1),
)


def test_padding_with_the_first_rows_is_found() -> None:
    found = duplicates(VOTING).measure(TABLE.select(np.array([0, 1, 2, 3, 0, 1])))
    assert found[Key("generator", "duplicates")] == Mean(5, 2)
    assert found[Key("aggregator", "duplicates")] == Mean(1, 0)
    assert found[Key("*", "duplicates")] == Mean(6, 2)


def test_another_episode_or_turn_is_another_row() -> None:
    assert duplicates(VOTING).measure(TABLE)[Key("*", "duplicates")] == Mean(4, 0)
    again = replace(
        TABLE.select(np.array([0, 0, 0])),
        episode_N=np.array([0, 1, 1]),
        turn_N=np.array([0, 0, 1]),
    )
    assert duplicates(VOTING).measure(again)[Key("*", "duplicates")] == Mean(3, 0)
