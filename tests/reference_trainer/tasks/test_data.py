# ruff: noqa: E501
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest

from reference_trainer.tasks.data import DataError, load_dapo_math, load_deepcoder
from reference_trainer.tasks.unit_tests import UnitTest, last_code_block, passes_tests


def _math_rows(count: int) -> list[dict[str, Any]]:
    """As in open-r1/DAPO-Math-17k-Processed."""
    return [
        {
            "prompt": f"What is {n} + 1?",
            "solution": str(n + 1),
            "data_source": "math_dapo",
            "source_prompt": [{"role": "user", "content": f"What is {n} + 1? Answer: $Answer"}],
            "ability": "MATH",
            "reward_model": {"ground_truth": str(n + 1), "style": "rule-lighteval/MATH_v2"},
            "extra_info": {"index": f"uuid-{n}"},
        }
        for n in range(count)
    ]


def _code_rows(count: int) -> list[dict[str, Any]]:
    """As in the subset primeintellect of agentica-org/DeepCoder-Preview-Dataset."""
    tests = [{"type": "stdin_stdout", "input": "1\n", "output": "2\n"}]
    return [
        {"problem": f"Problem {n}", "solutions": ["print(2)"], "tests": json.dumps(tests)}
        for n in range(count)
    ]


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_parquet(path)
    return path


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def test_math_rows_are_split_as_the_library_splits_them(tmp_path: Path) -> None:
    rows = _math_rows(50)
    splits = load_dapo_math(_parquet(tmp_path / "train.parquet", rows))
    expected = datasets.Dataset.from_list(rows).train_test_split(test_size=0.1, seed=42)
    assert [row.question for row in splits.test] == expected["test"]["prompt"]
    assert [row.question for row in splits.train] == expected["train"]["prompt"]
    assert (len(splits.train), len(splits.test)) == (45, 5)
    assert all(row.answer == str(int(row.question.split()[2]) + 1) for row in splits.train)
    assert all(row.id.startswith("uuid-") for row in splits.train)


def test_file_kinds_give_the_same_rows(tmp_path: Path) -> None:
    rows = _math_rows(20)
    folder = tmp_path / "folder"
    folder.mkdir()
    _parquet(folder / "0.parquet", rows[:10])
    _parquet(folder / "1.parquet", rows[10:])
    splits = [
        load_dapo_math(_parquet(tmp_path / "a.parquet", rows)),
        load_dapo_math(_jsonl(tmp_path / "b.jsonl", rows)),
        load_dapo_math(folder),
        load_dapo_math(str(folder)),
    ]
    assert all(one == splits[0] for one in splits)


def test_unusable_math_rows_are_dropped_and_counted(tmp_path: Path) -> None:
    rows = _math_rows(40)
    rows[3]["prompt"] = "  "
    rows[4]["solution"] = rows[5]["solution"] = ""
    rows[4]["reward_model"]["ground_truth"] = ""
    splits = load_dapo_math(_jsonl(tmp_path / "rows.jsonl", rows))
    assert splits.dropped == {"no question": 1, "no answer": 1}
    assert len(splits.train) + len(splits.test) == 38


def test_prepared_math_columns_are_read(tmp_path: Path) -> None:
    rows = [{"question": f"q{n}", "final_answer": n} for n in range(20)]
    splits = load_dapo_math(_jsonl(tmp_path / "rows.jsonl", rows))
    assert {row.answer for row in (*splits.train, *splits.test)} == {str(n) for n in range(20)}


def test_code_rows_are_shuffled_and_the_first_are_the_test_split(tmp_path: Path) -> None:
    rows = _code_rows(30)
    splits = load_deepcoder(_parquet(tmp_path / "rows.parquet", rows), test_rows=10)
    shuffled = datasets.Dataset.from_list(rows).shuffle(seed=42)["problem"]
    assert [row.question for row in splits.test] == list(shuffled)[:10]
    assert [row.question for row in splits.train] == list(shuffled)[10:]
    assert splits.train[0].tests == (UnitTest("stdin_stdout", "1\n", "2\n"),)


def _one(tmp_path: Path, **changes: Any) -> Any:
    """The row with ``changes``, None if it was dropped, after its drop counts."""
    columns = dict.fromkeys(changes)
    rows = [{**columns, **row} for row in _code_rows(3)]
    rows[0] |= {"problem": "the row", **changes}
    splits = load_deepcoder(_jsonl(tmp_path / "rows.jsonl", rows), test_rows=1)
    found = [row for row in (*splits.train, *splits.test) if row.question == "the row"]
    return found[0] if found else dict(splits.dropped)


CALL = UnitTest("functional", function="add", arguments=([1, 2], 3), expected=[6])


@pytest.mark.parametrize(
    ("changes", "tests"),
    [
        (
            {"tests": json.dumps([{"type": "function_call", "fn_name": "add", "input": [[1, 2], 3], "output": [6]}])},
            (CALL,),
        ),
        (
            {
                "tests": None,
                "ground_truth": json.dumps(
                    [{"testtype": "functional", "input": "[1, 2]\n3", "output": "[6]", "metadata": {"func_name": "add"}}]
                ),
            },
            (CALL,),
        ),
        (
            {
                "tests": json.dumps([{"testtype": "functional", "input": "[1, 2]\n3", "output": "[6]"}]),
                "metadata": json.dumps({"func_name": "add"}),
            },
            (CALL,),
        ),
        (
            {"tests": json.dumps({"fn_name": "add", "inputs": [[[1, 2], 3]], "outputs": [[6]]})},
            (CALL,),
        ),
        (
            {"tests": json.dumps({"inputs": ["1\n", "2\n"], "outputs": ["a", "b"]})},
            (UnitTest("stdin_stdout", "1\n", "a"), UnitTest("stdin_stdout", "2\n", "b")),
        ),
        (
            {"tests": str([{"type": "stdin_stdout", "input": ["1", "2"], "output": "3"}])},
            (UnitTest("stdin_stdout", "1\n2", "3"),),
        ),
    ],
)  # fmt: skip
def test_every_form_of_tests_is_read(
    tmp_path: Path, changes: dict[str, Any], tests: tuple[UnitTest, ...]
) -> None:
    assert _one(tmp_path, **changes).tests == tests


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "no tests"),
        ("", "no tests"),
        ("{not json", "tests cannot be read"),
        ("[" * 5000, "tests cannot be read"),
        ("[1, 2]", "malformed tests"),
        ('[{"input": "1"}]', "malformed tests"),
        ('{"inputs": ["1"], "outputs": []}', "malformed tests"),
        ('{"inputs": 1, "outputs": 2}', "malformed tests"),
        ('[{"type": "function_call", "input": [1], "output": 1}]', "functional tests without a function name"),
        ('[{"testtype": "functional", "fn_name": "f", "input": "x y", "output": "1"}]', "malformed tests"),
        ('[{"type": "quantum", "input": "1", "output": "1"}]', "tests of unknown type 'quantum'"),
    ],
)  # fmt: skip
def test_rows_without_usable_tests_are_dropped_and_counted(
    tmp_path: Path, text: str, reason: str
) -> None:
    assert _one(tmp_path, tests=text) == {reason: 1}


ROWS = Path(__file__).parent / "rows"
"""Small files with the columns that the data sets have on the hub; the problems are ours."""


def test_dapo_math_as_published() -> None:
    splits = load_dapo_math(ROWS / "dapo_math.jsonl")
    assert (len(splits.train), len(splits.test), dict(splits.dropped)) == (9, 1, {})
    by_id = {row.id[-2:]: row for row in (*splits.train, *splits.test)}
    assert by_id["05"].question == "A square has area 169. Find its perimeter."
    assert by_id["05"].answer == "52"


@pytest.mark.parametrize(
    ("subset", "kinds"),
    [
        ("primeintellect", ["stdin_stdout", "stdin_stdout", "functional", "stdin_stdout"]),
        ("lcbv5", ["functional", "stdin_stdout"]),
        ("taco", ["stdin_stdout", "functional"]),
    ],
)
def test_deepcoder_as_published(subset: str, kinds: list[str]) -> None:
    """The subsets' own solutions pass their tests, and a program that does nothing passes none."""
    file = ROWS / f"deepcoder_{subset}.jsonl"
    splits = load_deepcoder(file, test_rows=1)
    rows = sorted((*splits.train, *splits.test), key=lambda row: row.id)
    assert [row.tests[0].kind for row in rows] == kinds
    assert dict(splits.dropped) == {}
    raw = [json.loads(line) for line in file.read_text().splitlines()]
    for row, published in zip(rows, raw, strict=True):
        assert published["problem"].startswith(row.question[:40])
        assert bool(row.starter_code) is bool(published.get("starter_code"))
        assert not passes_tests("pass", row.tests)
        for solution in published.get("solutions", ()):
            assert passes_tests(last_code_block(solution) or solution, row.tests)


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no data file"):
        load_dapo_math(tmp_path / "notes.txt")
    with pytest.raises(DataError, match="holds no"):
        load_dapo_math(tmp_path / "empty")
    with pytest.raises(DataError, match="neither a file"):
        load_dapo_math(tmp_path / "missing.parquet")
    with pytest.raises(DataError, match="neither a file"):
        load_dapo_math("no-such-thing")
    with pytest.raises(DataError, match="test_rows"):
        load_deepcoder(_jsonl(tmp_path / "few.jsonl", _code_rows(5)))
    rows = [{"text": "x"}] * 20
    other = _jsonl(tmp_path / "other.jsonl", rows)
    for load, wanted in ((load_dapo_math, "final_answer"), (_load_few, "ground_truth or tests")):
        with pytest.raises(DataError, match=f"Expected are .*{wanted}.*has .'text'.*task.source"):
            load(other)
    for name, content in (("a.parquet", b"not a parquet file"), ("b.jsonl", b'{"prompt": ')):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name} cannot be read as .*again"):
            load_dapo_math(tmp_path / name)


def _load_few(source: Path) -> Any:
    return load_deepcoder(source, test_rows=2)


def test_a_hub_id_that_cannot_be_reached_is_a_clear_error() -> None:
    with pytest.raises(DataError, match=r"no file or folder nobody/no-such-dataset.*task\.source"):
        load_dapo_math("nobody/no-such-dataset")


def test_rows_that_the_papers_code_prepared(tmp_path: Path) -> None:
    """Its splits are kept as they are, and its other files beside them are not read."""
    rows = [
        {
            "question": f"Be good.\n\nProblem {n}### Format: ...\n### Answer: ...\n\n",
            "ground_truth": json.dumps(
                [{"input": "1", "output": "2", "testtype": "stdin_stdout", "metadata": {}}]
            ),
            "data_source": "livecodebench",
            "uid": f"deepcoder_{n}",
            "index": n,
            "starter_code": "",
            "metadata": "{}",
        }
        for n in range(5)
    ]
    _parquet(tmp_path / "train.parquet", rows[:3])
    _parquet(tmp_path / "test.parquet", [rows[4] | {"uid": "deepcoder_0"}])
    _parquet(tmp_path / "train_verl.parquet", [{"prompt": "placeholder"}])
    splits = load_deepcoder(tmp_path)
    assert [row.question for row in splits.train] == [row["question"] for row in rows[:3]]
    assert [row.id for row in splits.test] == ["test/deepcoder_0"]
    assert splits.train[0].id == "train/deepcoder_0"
    assert all(row.prepared for row in (*splits.train, *splits.test))


def test_a_snapshot_with_a_folder_per_configuration(tmp_path: Path) -> None:
    for config, count in (("all", 30), ("en", 20)):
        (tmp_path / config).mkdir()
        _parquet(tmp_path / config / "train-00000-of-00001.parquet", _math_rows(count))
    splits = load_dapo_math(tmp_path)
    assert len(splits.train) + len(splits.test) == 20


def test_validation_on_another_data_set(tmp_path: Path) -> None:
    """As in MathArena/aime_2025, whose answers are numbers."""
    aime = [
        {"problem_idx": n, "problem": f"Find {n}.", "answer": n, "problem_type": ["Algebra"]}
        for n in range(1, 4)
    ]
    rows = _jsonl(tmp_path / "dapo.jsonl", _math_rows(20))
    splits = load_dapo_math(rows, validation=_jsonl(tmp_path / "aime.jsonl", aime))
    assert splits.train == load_dapo_math(rows).train
    assert [(row.question, row.answer) for row in splits.test] == [
        *(("Find 1.", "1"), ("Find 2.", "2"), ("Find 3.", "3"))
    ]
    assert {row.id for row in splits.test}.isdisjoint(row.id for row in splits.train)
    assert splits.summary == "18 rows to train on, 3 to test on"
    with pytest.raises(DataError, match="neither a file"):
        load_dapo_math(rows, validation="missing.jsonl")
