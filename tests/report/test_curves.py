from __future__ import annotations

import math

from roledrift.report.curves import constant_values, limits, overlay_panel, undrawn_values
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Line, Panel


def panel(*values: float) -> Panel:
    return Panel("p", (Line("x", tuple(range(len(values))), values),))


def test_limits_are_shared_and_leave_room() -> None:
    low, high = limits([panel(1.0, 2.0), panel(5.0)], log=False, share=False) or (0, 0)
    assert (low, high > 5.0) == (0.0, True)
    low, high = limits([panel(10.0, 11.0)], log=False, share=False) or (0, 0)
    assert 9.5 < low < 10.0
    assert limits([panel(0.9)], log=False, share=True) == (0.0, 1.02)
    assert limits([panel(0.0, 1e-3)], log=True, share=False) == (1e-3 / 1.5, 1e-3 * 1.5)
    assert limits([panel(math.nan)], log=False, share=False) is None


def test_what_is_not_drawn_is_counted() -> None:
    curves = [{0: math.nan, 1: 0.0, 2: 1.0, 3: math.inf}]
    assert undrawn_values(curves, log=True) == (
        "2 non-finite values are a gap; 1 value at or below 0 not on a log axis"
    )
    assert undrawn_values([{0: 1.0}], log=True) == ""


def test_roles_that_are_far_apart_share_a_logarithmic_axis(failing: JudgedRun) -> None:
    near = {"generator": {0: 10.0, 1: 12.0}, "aggregator": {0: 4.0, 1: 5.0}}
    far = {**near, "aggregator": {0: 1.0, 1: 1.5}}
    assert not overlay_panel(failing, "q", near).log
    shown = overlay_panel(failing, "q", far)
    assert shown.log
    assert shown.title == "q, log scale"
    # Nothing at or below 0 has a place on such an axis, and shares have one of their own.
    assert not overlay_panel(failing, "q", {"generator": {0: 0.0, 1: 100.0}}).log
    assert not overlay_panel(failing, "q", far, share=True).log
    often_below = {"generator": {0: 1e-4, 1: -1e-5, 2: 0.1}}
    assert not overlay_panel(failing, "q", often_below, log=True).log
    once_below = {"generator": dict.fromkeys(range(20), 0.1) | {20: -0.1}}
    shown = overlay_panel(failing, "q", once_below, log=True)
    assert shown.log
    assert shown.note == "Not drawn: 1 value at or below 0 not on a log axis."


def test_the_onset_of_the_cause_is_marked_once(failing: JudgedRun) -> None:
    (mark,) = overlay_panel(failing, "q", {"generator": {0: 1.0}}).marks
    assert mark.step == failing.findings[0].alert.onset


def test_what_never_changes_is_said_and_not_drawn() -> None:
    assert constant_values({"a": {0: 1.0, 1: 1.0}, "b": {0: 2.0, 1: 2.0}}) == "a 1, b 2"
    assert constant_values({"a": {0: 1.0, 1: 1.1}}) == ""
    assert constant_values({"a": {0: 1.0}}) == "", "seen once is not constant"
    assert constant_values({"a": {0: math.nan, 1: math.nan}}) == ""
