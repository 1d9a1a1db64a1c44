from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from roledrift.cli.compare import compare, differences, interval
from roledrift.report.judged_run import load
from tests.cli.runs import write_run


def test_a_run_differs_from_a_healthy_one_and_not_from_itself(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a"), write_run(tmp_path / "b", inflate_from=15)
    one, two = load(a, "a"), load(b, "b")
    found = {(each.role, each.quantity): each for each in differences(one, two)}
    length = found["aggregator", "length"]
    assert length.paired == "step"
    assert length.pairs == 30
    assert length.low < length.b - length.a < length.high
    assert length.clear
    assert not found["generator", "length"].clear
    assert not any(each.clear for each in differences(one, one))


def test_the_interval_holds_the_mean_nineteen_times_in_twenty() -> None:
    draws = np.random.default_rng(1)
    hits = 0
    for _ in range(100):
        low, high = interval(draws.normal(size=60).tolist())
        hits += low <= 0 <= high
    assert 86 <= hits <= 99


def test_unpaired_values_are_compared_by_their_means() -> None:
    low, high = interval([0.0] * 20, [1.0] * 9)
    assert (low, high) == (1.0, 1.0)


def test_few_values_have_no_interval() -> None:
    # One value is drawn again and again: its interval would be a point, and everything certain.
    assert np.isnan(interval([3.0] * 4)).all()
    assert np.isnan(interval([3.0] * 9, [2.0])).all()
    assert interval([3.0] * 5) == (3.0, 3.0)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a = write_run(tmp_path / "a")
    b = write_run(tmp_path / "b", inflate_from=15, config={"tier": "full"})
    assert compare(str(a), str(b), out=tmp_path / "report") == 0
    out = capsys.readouterr().out
    assert "the interval leaves out 0" in out
    assert "config: tier" in out
    assert "\x1b" not in out
    assert (tmp_path / "report" / "index.html").exists()
    assert compare(str(a), str(b), as_json=True) == 0
    body = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["b"] for one in body["settings"]}["config: tier"] == "full"
    (incident,) = body["incidents"]
    assert (incident["run"], incident["incident"]["role"]) == ("b", "aggregator")
    assert body["outcomes"]["b"] == incident["incident"]["severity"]
    assert incident["incident"]["sentence"] in out
    assert compare(str(a), str(tmp_path / "no"), as_json=True) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "not_found"


def test_steps_that_only_one_run_has_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = str(write_run(tmp_path / "a", 26)), str(write_run(tmp_path / "b"))
    assert compare(a, b) == 0
    assert "4 steps (26 to 29) of B left out: A has no such steps" in capsys.readouterr().err
    assert compare(b, a, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == {"a": [26, 27, 28, 29], "b": []}
    assert compare(a, a) == 0
    assert "left out" not in capsys.readouterr().err


def test_another_tools_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(__file__).parents[1] / "ingest" / "fixtures" / "trl"
    assert compare(str(log), str(log), as_json=True) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["a"] == str(log)
    assert {one["low"] for one in found["differences"] if one["pairs"] < 5} == {"NaN"}
