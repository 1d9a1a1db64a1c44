from __future__ import annotations

import math
import pickle

from roledrift_paper.measured import course, of

from roledrift.report.judged_run import JudgedRun
from tests.report.paper.summaries import summary_of


def test_what_is_read_of_a_run_is_small(failing: JudgedRun) -> None:
    one = summary_of(failing)
    assert of(one).norm["generator"].first == math.sqrt(18.0)
    assert of(one).norm["policy shared"].first == math.sqrt(18.0)
    assert len(pickle.dumps(one)) < 20_000
    assert repr(pickle.loads(pickle.dumps(one))) == repr(one)


def test_courses_leave_out_what_is_not_finite() -> None:
    one = course("x", {0: math.nan, 1: 2.0, 2: 8.0, 3: math.inf, 4: 1.0})
    assert one is not None
    assert (one.first, one.peak, one.peak_step, one.low, one.ratio) == (2.0, 8.0, 2, 1.0, 4.0)
    assert course("x", {0: math.nan}) is None
    zero = course("x", {0: 0.0, 1: 1.0})
    assert zero is not None
    assert math.isnan(zero.ratio)
