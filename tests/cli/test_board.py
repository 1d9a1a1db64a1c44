from pathlib import Path
from typing import Any

import pytest

from roledrift.cli.board import ago, board, scaled, times
from roledrift.cli.watched import Watched
from roledrift.detect.suite import DetectorSuite
from roledrift.store.reader import StoredRun, open_run
from roledrift.workflow import VOTING
from tests.cli.runs import write_run


def watched(run: StoredRun, **facts: Any) -> Watched:
    one = Watched(Path(run.path), DetectorSuite(run.header.workflow), VOTING.role_names, **facts)
    for record in run.steps():
        one.alerts += one.suite.update(record)
        one.records.append(record)
        one.last = record.step
    return one


def test_noise_is_flat_and_a_collapse_is_not() -> None:
    assert set(scaled([15, 19, 16, 18, 17], 17.0)) == {"▄"}
    assert scaled([17, 4.25, 68], 17.0) == "▄▁█"
    assert scaled([1.0, 100.0, 0.01], 1.0)[1:] == "█▁"  # farther than fourfold: the scale grows
    assert scaled([0.0, 0.5, 1.0], None) == "▁▄█"
    assert scaled([-2.0, -2.1, 3.0], None)[-1] == "█"
    assert scaled([0.0, 0.0], 0.0) == "▁▁"
    assert scaled([], 1.0) == ""
    assert len(scaled([1.0] * 99, 1.0, width=7)) == 7
    assert scaled([1.0] * 8 + [4.0] * 8, 1.0, width=4) == "▄▄██"


def test_ratios_are_short() -> None:
    ratios = [times(ratio) for ratio in (0.0, 1e-5, 0.454, 1.0, 4.12, 263.0, 3e6)]
    assert ratios == ["x0", "x<0.01", "x0.45", "x1", "x4.1", "x263", "x3e+06"]


def test_an_age_has_one_unit() -> None:
    assert [ago(x) for x in (-1, 40, 180, 7200, 400000)] == [
        "0 s",
        "40 s",
        "3 min",
        "2 h",
        "5 days",
    ]


def test_a_run_that_goes_on_says_how_far_it_is(tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path / "run", 12))
    lines = board([watched(run, state="open", planned=500, age=40.0)]).plain.splitlines()
    assert lines[1].startswith("run  step 11 of 500  open, last step 40 s ago")
    assert any(line.startswith("  accuracy ") and "best 0.62" in line for line in lines)
    assert "length" in board([]).plain


def test_without_a_baseline_nothing_is_compared_with_it(tmp_path: Path) -> None:
    lines = board([watched(open_run(write_run(tmp_path / "run", 8)))]).plain.splitlines()
    (aggregator,) = [line.split() for line in lines if line.startswith("  aggregator")]
    assert aggregator[-1] == "5.1"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_board_fits(width: int, tmp_path: Path) -> None:
    run = open_run(write_run(tmp_path / "drift", inflate_from=15))
    one = watched(run, state="finished")
    lines = board([one], width=width).plain.splitlines()
    assert lines[1] == "drift  step 29  finished  failing"
    (incident,) = one.suite.incidents
    shown = next(n for n, line in enumerate(lines) if line.startswith("  generator"))
    assert " ".join(line.strip() for line in lines[2 : shown - 1]) == incident.sentence
    assert lines[shown - 1].split()[0] == "accuracy"
    assert lines[shown + 1].split()[:2] == ["aggregator", "failing"]
    assert lines[shown + 1].endswith("x4.1" if width == 80 else "20.8 x4.1")
    if width >= 80:
        assert max(map(len, lines)) <= width
        assert "▄" in lines[shown + 1]


def test_the_worst_run_stands_first(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", inflate_from=15)]
    lines = board([watched(open_run(run)) for run in runs]).plain.splitlines()
    assert [line[0] for line in lines[1:] if not line.startswith(" ")] == ["b", "a"]
