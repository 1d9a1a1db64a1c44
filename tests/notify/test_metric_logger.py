import math

import pytest

from roledrift.notify.metric_logger import StatisticsLog
from roledrift.records import GramRecord, Stat, StepRecord


def record(step: int, n: float, mean: float) -> StepRecord:
    groups = {"generator": {"length": Stat(n, mean), "something_else": Stat(1, 1.0)}}
    gram = GramRecord("shared", ("generator/0", "generator/1"), ((4.0, 1.0), (1.0, 9.0)))
    return StepRecord(step=step, groups=groups, gradients=(gram,))


def test_means_are_weighted_over_the_steps_between_two_logs() -> None:
    log = StatisticsLog(["generator"])
    log.write_step(record(0, 3, 10.0))
    log.write_step(record(1, 1, 20.0))
    assert log.take() == {
        "roledrift/generator/length": pytest.approx(12.5),
        "roledrift/generator/0/grad_norm": 2.0,
        "roledrift/generator/1/grad_norm": 3.0,
    }
    assert log.take() == {}


def test_what_is_not_finite_or_empty_is_left_out() -> None:
    log = StatisticsLog(["generator"])
    log.write_step(StepRecord(step=0, groups={"generator": {"length": Stat(2, math.nan)}}))
    log.write_step(StepRecord(step=1, groups={"generator": {"length": Stat(0, 1.0)}}))
    assert log.take() == {}
