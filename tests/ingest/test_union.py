from pathlib import Path

import pytest

from roledrift.ingest import formats
from roledrift.ingest.importing import Imported, import_run, job_for
from roledrift.ingest.tree import find
from roledrift.ingest.union import united
from roledrift.store.reader import StoredRun, open_run
from tests.ingest import trees
from tests.ingest.logs import write_lines
from tests.ingest.test_verl import dump as verl_dump


def imported(root: Path, name: str, out: Path) -> tuple[Imported, StoredRun]:
    found = next(one for one in find(root, formats()) if one.name == name)
    done = import_run(united(found), job_for(found.sources[0].path), out / name)
    return done, open_run(out / name)


def test_a_wandb_log_and_a_dump_of_one_training_are_one_run(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    trees.dump(root, trees.IP, {10: 4, 20: 9}, trees.voting)
    logged = {
        step: {
            "actor/generator/chi2_token": step / 100,
            "actor/generator/grad_norm": 0.5,
            "batch/generator_acc": 0.99,
            "val/unknown/pass@1": 0.01,
        }
        for step in (5, 10, 15, 20, 25)
    }
    trees.console(root / "wandb" / "run-20260101_000000-abc", logged, name=trees.IP)
    done, run = imported(root, trees.IP, tmp_path / "out")
    assert (done.format, run.header.run) == ("paper + wandb", trees.IP)
    assert (run.header.scale, run.header.workflow.routing) == ("1.7b", "isolated")
    records = {one.step: one for one in run.steps()}
    assert list(records) == [5, 10, 15, 20, 25]
    assert records[10].mean("generator", "rollout.chi2") == 0.1
    assert records[25].mean("generator", "grad_norm") == 0.5
    # The evaluation's own numbers count; the log says the same of the training's rollouts.
    assert records[10].mean("generator", "correct") == pytest.approx(4 / 12)
    assert records[5].stat("generator", "correct") is None
    # AIME and DAPO are two sets of problems, and two numbers.
    accuracy = {step: one.totals.get("val_accuracy") for step, one in records.items()}
    assert accuracy == {5: None, 10: pytest.approx(4 / 12), 15: None, 20: pytest.approx(9 / 12),
                        25: None}  # fmt: skip
    assert records[15].totals["val_accuracy_of_log"] == 0.01
    assert run.header.notes["validation set"] == "dapo_math"
    assert "wandb" in run.header.notes["also read"]


def test_a_file_logger_beside_rollouts_elsewhere(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    verl_dump(root / "a", steps=3)
    rows = [{"step": n, "data": {"actor/grad_norm": n / 2, "reward/mean": 9.0}} for n in range(4)]
    write_lines(root / "logs" / "a.jsonl", rows)
    verl_dump(root / "b", steps=1)
    _, run = imported(root, "a", tmp_path / "out")
    assert [one.mean("*", "grad_norm") for one in run.steps()] == [0, 0.5, 1, 1.5]
    assert run.steps()[0].mean("output", "reward") == 1


def test_other_problems_are_another_task(tmp_path: Path) -> None:
    root = trees.paper_tree(tmp_path / "tree")
    done, run = imported(root, f"{trees.IP} on aime2025", tmp_path / "out")
    assert (run.header.task, run.header.notes["validation set"]) == ("math on aime2025", "aime2025")
    assert [one.totals["val_accuracy"] for one in run.steps()] == pytest.approx(
        [1 / 3, 1 / 3, 2 / 3]
    )
    assert done.tally.spans == 36


def test_the_base_models_dump_becomes_the_base_accuracy(tmp_path: Path) -> None:
    root = trees.paper_tree(tmp_path / "tree")
    for name, base in ((trees.IP, 3 / 12), (trees.SP, 3 / 12), (trees.JUDGED, 8 / 12)):
        _, run = imported(root, name, tmp_path / "out")
        assert run.steps()[0].totals["base_accuracy"] == pytest.approx(base)
        assert run.header.notes["base accuracy"].startswith("from the dump ")
    _, orch = imported(root, trees.ORCH, tmp_path / "out")
    assert "base_accuracy" not in orch.steps()[0].totals
    assert (orch.header.workflow.name, orch.header.scale) == ("orch_workers", "1.7b_s430")


def test_results_win_over_counting_and_give_the_base(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    trees.dump(root, trees.IP, {10: 4, 20: 9}, trees.voting, n=2)
    trees.dump(root, trees.SP, {10: 4}, trees.voting, n=2)
    trees.results(
        root, trees.result(trees.IP, 10, 0.4), trees.result(trees.IP, 20, 0.5),
        trees.result(trees.BASE, 0, 0.3),
    )  # fmt: skip
    _, run = imported(root, trees.IP, tmp_path / "out")
    assert [one.totals["val_accuracy"] for one in run.steps()] == [0.4, 0.5]
    assert run.steps()[0].totals["base_accuracy"] == 0.3
