from __future__ import annotations

from dataclasses import replace

from roledrift.report.model import Bar, Strip
from roledrift.report.sections import timeline
from roledrift.report.view import View


def test_lanes_show_coverage_baseline_validation_and_alerts(failing: View) -> None:
    strip = timeline.build(failing).blocks[0]
    assert isinstance(strip, Strip)
    labels = [lane.label for lane in strip.lanes]
    assert labels[:3] == ["recorded", "baseline", "validation"]
    assert "aggregator · length_inflation" in labels
    assert strip.lanes[1].bars == (Bar(0, 7),)


def test_a_gap_breaks_the_bar_and_a_seam_is_shown(healthy: View) -> None:
    records = tuple(one for one in healthy.records if not 10 <= one.step < 20)
    broken = replace(healthy, records=records, seams=(20,))
    assert timeline.coverage(broken) == (Bar(0, 9), Bar(20, 39))
    strip = timeline.build(broken).blocks[0]
    assert isinstance(strip, Strip)
    assert strip.lanes[2].ticks == (20,)


def test_a_run_recorded_every_tenth_step_has_no_gaps(healthy: View) -> None:
    sparse = replace(healthy, records=tuple(replace(r, step=10 * r.step) for r in healthy.records))
    assert timeline.coverage(sparse) == (Bar(0, 390),)
