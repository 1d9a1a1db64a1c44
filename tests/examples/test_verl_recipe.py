"""The recipe for verl without verl: its data, and what grades it."""

import base64
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from verl_recipe.prepare import main
from verl_recipe.rows import pack_tests, problem_of, row_of, unpack_tests

from reference_trainer.errors import SettingsError
from reference_trainer.tasks import Problem
from reference_trainer.tasks.data import load_dapo_math, load_deepcoder
from reference_trainer.tasks.datasets import DapoMathTask, DeepCoderTask
from reference_trainer.tasks.math import MathTask
from reference_trainer.tasks.unit_tests import UnitTest

ROWS = Path(__file__).parents[1] / "reference_trainer" / "tasks" / "rows"


def written(folder: Path, split: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / f"{split}.parquet").to_pylist()
    return rows


def test_generated_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["math", "--out", str(tmp_path), "--rows", "5", "2"]) == 0
    assert "train.parquet: 5 rows" in capsys.readouterr().out
    for split, count in (("train", 5), ("validation", 2)):
        rows = written(tmp_path, split)
        assert len(rows) == count
        for index, row in enumerate(rows):
            problem = MathTask().problem(split, index)  # type: ignore[arg-type]
            assert problem_of(row) == problem
            assert row["data_source"] == "math"
            assert row["extra_info"]["index"] == index


def test_dapo_math(tmp_path: Path) -> None:
    source = ROWS / "dapo_math.jsonl"
    assert main(["dapo_math", "--out", str(tmp_path), "--source", str(source)]) == 0
    task = DapoMathTask(load_dapo_math(source))
    rows = written(tmp_path, "train")
    assert [problem_of(row) for row in rows] == [
        task.problem("train", index) for index in range(len(task.splits.train))
    ]


def test_programs_keep_their_tests(tmp_path: Path) -> None:
    source = ROWS / "deepcoder_primeintellect.jsonl"
    options = ["--source", str(source), "--test-rows", "1"]
    assert main(["deepcoder", "--out", str(tmp_path), *options]) == 0
    splits = load_deepcoder(source, test_rows=1)
    task = DeepCoderTask(splits)
    for split, wanted in (("train", splits.train), ("validation", splits.test)):
        rows = written(tmp_path, split)
        assert len(rows) == len(wanted) > 0
        for index, (row, code) in enumerate(zip(rows, wanted, strict=True)):
            found = problem_of(row)
            assert found.question == task.problem(split, index).question  # type: ignore[arg-type]
            assert unpack_tests(found.answer) == code.tests


def test_tests_that_json_changes_are_refused() -> None:
    good = (UnitTest("functional", function="f", arguments=([1, None], "a"), expected={"a": 1.5}),)
    assert unpack_tests(pack_tests(good)) == good
    with pytest.raises(ValueError, match="change"):
        pack_tests((UnitTest("functional", function="f", arguments=({1: 2},), expected=0),))
    for text in ("4", "no base64", base64.b64encode(b"plain").decode()):
        with pytest.raises(SettingsError, match=r"verl_recipe\.prepare"):
            unpack_tests(text)


def test_a_row_of_somebody_else() -> None:
    row = row_of(Problem("7", "1 + 1?", "2"), 3, source="mine", split="train")
    row["raw_prompt"] = [{"role": "system", "content": "Be brief."}, *row.pop("prompt")]
    row["extra_info"] = {"index": 3}
    assert problem_of(row) == Problem("3", "1 + 1?", "2")
    for broken in ({**row, "raw_prompt": []}, {**row, "reward_model": {}}, {"data_source": "x"}):
        with pytest.raises(SettingsError, match=r"prompt\[-1\]\.content"):
            problem_of(broken)


def test_mistakes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dapo_math", "--out", str(tmp_path), "--source", str(tmp_path / "no.jsonl")]) == 2
    assert "--source" in capsys.readouterr().err
    assert main(["math", "--out", str(tmp_path), "--test-rows", "3"]) == 2
    assert "--test-rows" in capsys.readouterr().err
