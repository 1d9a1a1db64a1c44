import shlex
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from reference_trainer.__main__ import _overrides, _parser, main
from reference_trainer.commands import evaluate_all
from reference_trainer.errors import SettingsError
from reference_trainer.grid import Cell, cells, load_source
from reference_trainer.paper_scale import (
    GRIDS,
    NOT_RUN,
    SCALES,
    SHAPES,
    Shape,
    estimate,
    launch,
    lengths,
    policies,
)
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from reference_trainer.setup import prepare
from reference_trainer.tasks import Task
from reference_trainer.tasks.data import DataError
from reference_trainer.tiny_model import build_config
from reference_trainer.trainer import train
from reference_trainer.workflows import Scene, load_script
from reference_trainer.workflows.prompts import load_prompts
from roledrift import open_run
from tests.reference_trainer.chat_model import make_chat_model


@pytest.mark.parametrize("scale", ["0.6B", "1.7B", "4B"])
def test_weights_are_those_of_the_real_architecture(scale: str) -> None:
    shape = SHAPES[scale]
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        intermediate_size=shape.feed_forward,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        tie_word_embeddings=True,
    )
    with torch.device("meta"):
        model = Qwen3ForCausalLM(config)
    assert shape.parameters == model.num_parameters()


def test_adapters_are_those_of_peft(make_bank: Callable[..., AdapterBank]) -> None:
    tiny = build_config("S")
    shape = Shape(
        tiny.hidden_size,
        tiny.num_hidden_layers,
        tiny.intermediate_size,
        tiny.num_attention_heads,
        tiny.num_key_value_heads,
        tiny.head_dim,
        tiny.vocab_size,
    )
    bank = make_bank("shared")  # rank 4
    assert shape.lora(4) == sum(one.numel() for one in bank.parameters_of("shared"))


def test_memory_by_hand() -> None:
    cell = Cell("voting", "ip", "code", "0.6B")
    assert policies(cell) == 2
    assert policies(Cell("single", "sa", "code", "0.6B")) == 1
    assert policies(Cell("orch_workers", "ip", "math", "4B")) == 3
    memory = estimate(cell, rank=64, sequences=1)
    assert memory.weights == 4 * 596_049_920
    # Keys and values, 28 layers of 8 heads of 128, 2 bytes, 10240 + 2048 tokens.
    assert memory.cache == 2 * 28 * 8 * 128 * 2 * 12_288
    adapter = 28 * 64 * (3072 + 2 * 2048 + 3072 + 3 * 4096)
    assert memory.adapters == 6 * 2 * adapter
    assert memory.optimizer == 4 * adapter + 8 * 2 * adapter
    layer = 2048 + 1024 + 1024 + 1024 + 3072 + 3072 + 1024 + 2 * 1024
    logits = 8 * 2048 * 151_936
    assert memory.activations == 2 * 12_288 * (28 * 1024 + layer) + logits


def test_lengths() -> None:
    assert lengths(Cell("eval_opt", "sp", "math", "4B")).prompt == 30_720
    assert lengths(Cell("orch_workers", "sp", "math", "4B")).prompt == 20_480
    assert lengths(Cell("single", "sa", "code", "4B")).prompt == 4096
    assert lengths(Cell("eval_opt", "sp", "code", "4B")).rounds == 2


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("cell", cells(SCALES), ids=lambda cell: cell.name)
def test_every_printed_command_is_one_that_train_accepts(cell: Cell, grid: str) -> None:
    over = {"model": {"path": "/models/My Qwen3", "attention": "eager"}, "train": {"steps": 7}}
    words = shlex.split(launch(cell, seed=3, overrides=over, grid=grid))
    assert words[: words.index("reference_trainer") + 1] == [
        *("accelerate", "launch", "--num_processes", "1", "-m", "reference_trainer")
    ]
    options = _parser().parse_args(words[words.index("reference_trainer") + 1 :])
    config = load_source(options.source, _overrides(options.set))
    assert config.name == options.out.name == f"{cell.name}-seed3"
    assert (config.seed, config.train.steps) == (3, 7)
    assert config.model.path == "/models/My Qwen3"
    assert config.workflow == cell.workflow
    assert config.rollout.engine == "vllm"
    assert (config.lora.rank, config.lora.alpha) == (64, 32)
    assert config.task.name == {"math": "dapo_math", "code": "deepcoder"}[cell.task]


@pytest.mark.parametrize("grid", GRIDS)
def test_a_dry_run_lists_all_cells(grid: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grid", "--preset", grid, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert f"42 runs; {NOT_RUN}" in out
    for cell in cells(SCALES):
        assert f"\n{cell.name}-seed0\n" in out
        assert f"-m reference_trainer train {grid}/{cell.name} " in out
    assert ("paper_compat: nothing on" in out) == (grid == "paper")
    assert main(["grid", "--preset", grid]) == 2
    assert "only lists cells: add --dry-run" in capsys.readouterr().err


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


def test_adapters_and_optimizer_of_the_real_architecture() -> None:
    """Counted on tensors without storage, against the estimate."""
    shape = SHAPES["0.6B"]
    config = Qwen3Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        intermediate_size=shape.feed_forward,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        head_dim=shape.head,
        tie_word_embeddings=True,
        pad_token_id=0,
    )
    with torch.device("meta"):
        base = Qwen3ForCausalLM(config).to(torch.bfloat16)
        bank = AdapterBank(
            base, ("a", "b"), lora=LoraSettings(rank=64), adam=AdamSettings(), seed=0
        )
    memory = estimate(Cell("voting", "ip", "math", "0.6B"))
    held = {id(one): one for policy in bank.policies for one in bank.parameters_of(policy)}
    floats = sum(one.numel() for one in held.values())
    assert {one.dtype for one in held.values()} == {torch.float32}
    assert memory.adapters == floats * (4 + 2)
    assert memory.optimizer == floats * 8 + floats // 2 * 4
    frozen = [one for one in bank.model.parameters() if id(one) not in held]
    assert memory.weights == 2 * sum(one.numel() * one.element_size() for one in frozen)
