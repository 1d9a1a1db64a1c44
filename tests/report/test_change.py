from __future__ import annotations

import math

from roledrift.report.change import change_of


def test_a_collapse_after_a_rise_is_not_averaged_away() -> None:
    curve = {1: 0.5, 2: 0.6, 3: 0.94, 4: 0.5, 5: 0.05}
    change = change_of(curve, (1, 2), (3, 5))
    assert change is not None
    assert (change.start, change.last, change.last_step) == (0.55, 0.05, 5)
    assert (change.farthest, change.farthest_step) == (0.05, 5)
    assert change.ratio == 0.05 / 0.55
    assert not change.level


def test_the_farthest_value_is_below_for_what_falls_and_above_for_what_rises() -> None:
    fallen = change_of({1: 1.0, 2: 0.1, 3: 0.62}, (1, 1), (2, 3))
    risen = change_of({1: 1.0, 2: 9.0, 3: 2.0}, (1, 1), (2, 3))
    assert fallen is not None
    assert risen is not None
    assert (fallen.farthest, fallen.farthest_step) == (0.1, 2)
    assert (risen.farthest, risen.farthest_step) == (9.0, 2)


def test_gaps_and_windows_without_values() -> None:
    assert change_of({1: 1.0, 2: math.nan}, (1, 1), (2, 3)) is None
    change = change_of({2: 3.0, 3: math.inf}, (0, 1), (2, 3))
    assert change is not None
    assert (change.start, change.last, change.ratio, change.level) == (None, 3.0, None, False)


def test_a_ratio_to_nothing_is_none() -> None:
    change = change_of({1: 0.0, 2: 0.5}, (1, 1), (2, 2))
    assert change is not None
    assert change.ratio is None
