"""The paper's tables from a tree in its own format; every value is counted by hand."""

import csv

import pytest
from typer.testing import CliRunner

from roledrift.cli.main import app
from tests.ingest import trees

Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    root = trees.paper_tree(tmp_path_factory.mktemp("tree"))
    logged = {
        step: {"actor/generator/grad_norm": norm, "actor/aggregator/grad_norm": 0.2}
        for step, norm in ((1, 0.5), (2, 5.0), (3, 1.0))
    }
    trees.console(root / "wandb" / "run-20260101_000000-ip", logged, name=trees.IP)
    shared = {step: {"actor/grad_norm": norm} for step, norm in ((1, 0.5), (2, 1.0))}
    trees.console(root / "wandb" / "run-20260101_000000-sp", shared, name=trees.SP)
    out = tmp_path_factory.mktemp("report")
    done = CliRunner().invoke(app, ["report", str(root), "-o", str(out), "--format", "csv,json"])
    assert done.exit_code == 0, done.output
    found = {}
    for file in (out / "tables").glob("table*.csv"):
        with file.open() as lines:
            heads, *rows = csv.reader(lines)
        # The last column, the link, is called "run" too.
        found[file.stem] = [dict(zip(heads[:-1], row, strict=False)) for row in rows]
    return found


def test_table_1_has_no_base_model_among_its_seeds(tables: dict[str, Rows]) -> None:
    row = next(one for one in tables["table1"] if one["workflow"] == "voting"
               and one["validated on"] == "dapo_math")  # fmt: skip
    assert (row["task"], row["scale"]) == ("math", "1.7b")
    values = [float(row[name]) for name in ("base", "SA-RL", "IP", "SP")]
    assert values == pytest.approx([3 / 12, 8 / 12, 9 / 12, 6 / 12])
    assert float(row["IP-SA, pp"]) == pytest.approx(100 * (9 - 8) / 12)
    assert float(row["SP-SA, pp"]) == pytest.approx(100 * (6 - 8) / 12)
    # A training that only lost has the best of its checkpoints, and not its base.
    judged = next(one for one in tables["table1"] if one["workflow"] == "eval_opt")
    assert [float(judged[name]) for name in ("base", "SP")] == pytest.approx([8 / 12, 6 / 12])


def test_table_1_never_averages_different_problems(tables: dict[str, Rows]) -> None:
    row = next(one for one in tables["table1"] if one["validated on"] == "aime2025")
    assert float(row["IP"]) == pytest.approx(2 / 3)
    assert (row["SP"], row["SA-RL"], row["base"]) == ("", "", "")


def test_table_2_has_the_imported_gradient_norms(tables: dict[str, Rows]) -> None:
    norms = {(one["run"], one["role"]): one["gradient norm"] for one in tables["table2"]}
    assert float(norms[trees.IP, "generator"]) == pytest.approx(10)
    assert float(norms[trees.IP, "aggregator"]) == pytest.approx(1)
    assert float(norms[trees.SP, "all"]) == pytest.approx(2)


def test_table_3_is_filled(tables: dict[str, Rows]) -> None:
    (row,) = tables["table3"]
    assert (row["workflow"], row["adapter on"]) == ("voting", "generator")
    assert [float(row[name]) for name in ("accuracy", "SA-RL")] == pytest.approx([7 / 12, 8 / 12])


def test_tables_4_to_6_count_all_texts_and_trainings_alone(tables: dict[str, Rows]) -> None:
    voting = [one for one in tables["table4"] if one["run"] in (trees.IP, trees.SP)]
    assert len(tables["table4"]) == 3 + 3 + 2  # early is best in the run on AIME
    assert {one["run"] for one in tables["table4"]} == {
        trees.IP, trees.SP, f"{trees.IP} on aime2025",
    }  # fmt: skip
    for row in voting:
        assert row["problems"] == "12"
        assert float(row["generator: mean length"]) == pytest.approx(11)
        assert float(row["aggregator: p50"]) == 4
        assert float(row["aggregator: p95"]) == 100
        assert float(row["aggregator: terse"]) == pytest.approx(11 / 12)
        assert float(row["generator: 3-gram overlap"]) == 1
    for row in tables["table5"]:
        assert (row["run"], row["problems"]) == (trees.JUDGED, "12")
        assert float(row["evaluator: code fence"]) == pytest.approx(0.5)
        assert float(row["evaluator: bare stamp"]) == pytest.approx(0.5)
        assert float(row["evaluator: says correct"]) == 1
        assert float(row["generator: truncated"]) == pytest.approx(3 / 12)
    assert len(tables["table5"]) == 2
    for row in tables["table6"]:
        assert (row["run"], row["policy"], row["problems"]) == (trees.ORCH, "IP", "12")
        assert float(row["generator: mean length"]) == pytest.approx(30)
        assert float(row["generator: truncated"]) == pytest.approx(6 / 12)
        assert float(row["orchestrator: openers"]) == 1
        assert float(row["aggregator: p50"]) == 11
        assert float(row["aggregator: p95"]) == 17
