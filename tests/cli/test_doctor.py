from __future__ import annotations

import json
from pathlib import Path

import pytest

from roledrift.cli.doctor import doctor, machine, of_run
from roledrift.records import GramRecord, RunHeader, StepRecord
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING
from tests.cli.runs import write_run


def test_this_machine_is_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert not [one for one in machine() if one.state == "broken"]
    assert list(tmp_path.iterdir()) == []


def test_a_run_says_what_is_missing_and_which_switch_supplies_it(tmp_path: Path) -> None:
    items = {
        one.topic: one
        for one in of_run(str(write_run(tmp_path / "run", config={"tier": "business"})))
    }
    assert items["Response length"].state == "ok"
    assert items["Entropy"].state == "absent"
    assert "entropy_BT" in items["Entropy"].advice
    assert "per_role" in items["texts"].advice
    assert items["length_inflation"].text == "judges aggregator"
    assert items["entropy_collapse"].text == "no verdict"
    assert items["entropy_collapse"].advice == "needs entropy"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path / "run")
    assert doctor(str(path)) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert doctor(str(path), as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "roledrift.doctor/1"
    assert doctor(str(tmp_path / "no"), as_json=True) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "not_found"


def test_a_question_that_is_open_says_what_would_answer_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert doctor(str(write_run(tmp_path / "run"))) == 0
    assert "entropy_BT in RoleBatch" in capsys.readouterr().out


def test_another_tools_log(capsys: pytest.CaptureFixture[str]) -> None:
    log = Path(__file__).parents[1] / "ingest" / "fixtures" / "trl"
    assert doctor(str(log)) == 0
    said = capsys.readouterr()
    assert "4 steps" in said.out
    assert "imported as trl" in said.err


@pytest.mark.parametrize("refused", [False, True])
def test_it_says_how_much_of_the_gradient_is_covered(tmp_path: Path, refused: bool) -> None:
    gram = GramRecord(
        "shared", ("generator", "aggregator"), ((1.0, 0.0), (0.0, 1.0)), closure=0.0, covered=0.98
    )
    faults = {"role gradients of shared refused: the parts do not add up to .grad": 1}
    writer = RunWriter(tmp_path / "run", RunHeader(run="run", workflow=VOTING))
    for step in range(3):
        writer.write_step(
            StepRecord(step=step, faults=faults)
            if refused
            else StepRecord(step=step, gradients=(gram,))
        )
    writer.close()
    (item,) = [one for one in of_run(str(tmp_path / "run")) if one.topic == "role gradients"]
    if refused:
        assert item.state == "absent"
        assert "do not add up" in item.advice
    else:
        assert item.state == "ok"
        assert "cover 98 % of the gradient's norm" in item.text
