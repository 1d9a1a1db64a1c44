from pathlib import Path

from roledrift.cli.watched import Watched
from roledrift.detect.suite import DetectorSuite
from roledrift.records import StepRecord
from roledrift.workflow import VOTING


def test_a_series_leaves_out_what_is_missing_and_the_baseline_is_its_start() -> None:
    rewards = [1.0, float("nan"), *[3.0] * 7, 40.0]
    records = [StepRecord(step, totals={"reward": x}) for step, x in enumerate(rewards)]
    one = Watched(Path("x"), DetectorSuite(VOTING), records=[*records, StepRecord(10)])
    values = one.series(lambda record: record.totals.get("reward"))
    assert values == [1.0, *[3.0] * 7, 40.0]
    assert one.baseline(values) == 2.75
    assert one.baseline(values[:8]) is None, "it is still the baseline itself"
    assert one.conclusion.outcome == "no verdict"


def test_a_run_is_named_by_its_path_below_what_was_asked_for() -> None:
    suite = DetectorSuite(VOTING)
    assert Watched(Path("runs/a/run"), suite, below=Path("runs")).name == "a/run"
    assert Watched(Path("runs/a"), suite, below=Path("runs/a")).name == "a"
    assert Watched(Path("runs/a"), suite).name == "a"
