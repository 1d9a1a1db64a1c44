from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from reference_trainer.commands import evaluate_all
from reference_trainer.errors import SettingsError
from reference_trainer.grid import Cell, cells, load_source
from reference_trainer.setup import prepare
from reference_trainer.tasks import Task
from reference_trainer.tasks.data import DataError
from reference_trainer.trainer import train
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.prompts import load_prompts
from roledrift import open_run
from tests.reference_trainer.chat_model import make_chat_model

GRIDS = ("paper", "paper-code")
SCALES = ("0.6B", "1.7B", "4B")


@pytest.mark.parametrize("cell", cells(SCALES), ids=lambda cell: cell.name)
def test_paper_code_has_every_switch_on(cell: Cell) -> None:
    config = load_source(f"paper-code/{cell.name}", {})
    compat = asdict(config.paper_compat)
    assert compat.pop("padding_ranks") == 2
    assert set(compat.values()) == {True}
    assert config.rollout.lenient_selection
    assert config.train.grouping == (
        "slot" if (cell.workflow, cell.task) == ("voting", "math") else "role"
    )
    assert (config.train.minibatch, config.train.minibatch_counts) == (512, "spans")
    assert (config.train.old_logps, config.checkpoint.keep) == ("trainer", 0)
    assert (config.train.adam.schedule, config.train.adam.optimizers) == ("constant", "one")
    assert (config.sandbox.seconds, config.sandbox.memory_gib) == (3.0, 4.0)
    assert config.sandbox.library == ("site-packages",)
    assert config.validation.problems == {"math": 30, "code": 1000}[cell.task]
    assert config.rules == load_source(f"paper/{cell.name}", {}).rules


ROWS = Path(__file__).parent / "tasks" / "rows"
TASKS: dict[str, dict[str, Any]] = {
    "math": {"source": str(ROWS / "dapo_math.jsonl"), "validation": str(ROWS / "aime_2025.jsonl")},
    "code": {"source": str(ROWS / "deepcoder_primeintellect.jsonl"), "test_rows": 2},
}


@pytest.fixture(scope="module")
def tasks() -> dict[tuple[str, str], Task]:
    """The tasks of both grids, read from small files in the published columns."""
    configs = {
        (grid, task): load_source(f"{grid}/single-sa-{task}-0.6B", {"task": values})
        for grid in GRIDS
        for task, values in TASKS.items()
    }
    return {
        key: one.task.load(released=one.paper_compat.graders)  # type: ignore[union-attr]
        for key, one in configs.items()
    }


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("cell", cells(SCALES), ids=lambda cell: cell.name)
def test_every_cell_poses_problems_of_its_data_set(
    cell: Cell, grid: str, tasks: dict[tuple[str, str], Task]
) -> None:
    config = load_source(f"{grid}/{cell.name}", {"task": TASKS[cell.task]})
    task, workflow = tasks[grid, cell.task], config.routed()
    prompts = load_prompts(config.prompts, workflow=cell.workflow)
    scene = Scene(task, prompts, config.rollout.lenient_selection, config.rules)
    for split in ("train", "validation"):
        problem = task.problem(split, 0)  # type: ignore[arg-type]
        asks = next(load_script(config.workflow).play(problem, scene))
        assert all(problem.question in ask.messages[0].text for ask in asks)
        assert {workflow.policy_of(ask.role) for ask in asks} <= set(workflow.policies)
        if cell.task == "code":
            words = {"paper": "standard input", "paper-code": "stdin"}
            assert words[grid] in problem.question or "gcd" in problem.question


@pytest.mark.slow
@pytest.mark.parametrize("name", ["voting-ip-math-0.6B", "orch_workers-sp-code-0.6B"])
def test_cells_of_the_papers_code_run_on_a_small_model(tmp_path: Path, name: str) -> None:
    """Every switch at once, then the evaluation of the checkpoints on the test split."""
    task = TASKS["math" if "math" in name else "code"]
    small = {
        "task": task,
        "model": {"path": str(make_chat_model(tmp_path / "model")), "dtype": "float32"},
        "lora": {"rank": 2},
        "rollout": {"engine": "transformers", "problems": 2, "copies": 2, "max_new_tokens": 4},
        "train": {"steps": 2, "minibatch": 4},
        "validation": {"problems": 2},
        "checkpoint": {"every": 1},
    }
    config = load_source(f"paper-code/{name}", small)
    setup = prepare(config, cache=tmp_path)
    assert setup.stage.released_chat
    result = train(setup, out=tmp_path / "run")
    assert [report.step for report in result.steps] == [1, 2]
    overrides = {"task": {"validation": ""}} if "math" in name else {}
    files = evaluate_all(tmp_path / "run", cache=tmp_path, problems=1, overrides=overrides)
    assert [file.name for file in files] == ["step_0.json", "step_1.json", "step_2.json"]
    with pytest.raises(
        SettingsError, match=r"validation.problems = 9, and the test split of .* has"
    ):
        evaluate_all(tmp_path / "run", cache=tmp_path, problems=9)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"task": {"source": "no/such/rows.jsonl"}}, "no/such/rows.jsonl is neither a file"),
        ({"task": {**TASKS["math"], "validation": "aime.parquet"}}, "aime.parquet is neither a"),
        ({"task": TASKS["math"]}, r"rollout.problems = 64, and the train split of dapo_math has 9"),
        ({"prompts": "my/prompt.json"}, "prompts: my/prompt.json cannot be read"),
        (
            {"task": TASKS["math"], "rollout": {"problems": 2}, "validation": {"problems": 3}},
            "path",
        ),
    ],
)
def test_what_is_missing_is_named_before_a_model_is_loaded(
    values: dict[str, Any], message: str, tmp_path: Path
) -> None:
    config = load_source("paper-code/single-sa-math-4B", {"model": {"path": "nowhere"}, **values})
    with pytest.raises((SettingsError, DataError), match=message):
        prepare(config, cache=tmp_path)


def test_a_code_cell_runs_on_a_small_model(tmp_path: Path) -> None:
    small = {
        "task": TASKS["code"],
        "model": {"path": str(make_chat_model(tmp_path / "model")), "dtype": "float32"},
        "lora": {"rank": 2},
        "rollout": {"engine": "transformers", "problems": 2, "copies": 2, "max_new_tokens": 4},
        "train": {"steps": 1},
        "validation": {"problems": 2},
    }
    config = load_source("paper/voting-ip-code-0.6B", small)
    result = train(prepare(config, cache=tmp_path), out=tmp_path / "run")
    assert [report.step for report in result.steps] == [1]
    assert result.before is not None
    assert "sandbox" in open_run(tmp_path / "run").header.notes
    (tmp_path / "model" / "chat_template.jinja").unlink()
    with pytest.raises(SettingsError, match="has no chat template"):
        prepare(config, cache=tmp_path)


def test_a_cell_that_is_not_in_the_grid() -> None:
    with pytest.raises(SettingsError, match="no cell 'voting-ip-math-7B' in grid 'paper'"):
        load_source("paper/voting-ip-math-7B", {})
    assert load_source("tiny/voting-ip-math-S", {}).pretrain.size == "S"
