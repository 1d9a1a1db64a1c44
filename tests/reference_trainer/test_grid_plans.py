import json
from pathlib import Path

import pytest

from benchmarks.chat_model import make_chat_model
from reference_trainer.__main__ import main
from reference_trainer.children import Launch
from reference_trainer.errors import SettingsError
from reference_trainer.grid_plans import launch

ROWS = Path(__file__).parent / "tasks" / "rows"


def test_a_dry_run_shows_what_every_cell_needs(capsys: pytest.CaptureFixture[str]) -> None:
    grid = ["grid", "--preset", "paper", "--dry-run", "--only", "*-ip-*-4B"]
    assert main([*grid, "--gpu", "48GB"]) == 0
    said = capsys.readouterr().out
    lines = {line.split()[0]: line for line in said.splitlines()}
    advice = "does not fit; --set rollout.vllm.sleep=true"
    assert advice in lines["eval_opt-ip-math-4B-seed0"]
    assert lines["voting-ip-code-4B-seed0"].endswith("  fits")
    assert "6 runs; 2 do not fit; " in said
    assert main(grid) == 0
    assert "add --gpu 80GB to see what each needs" in capsys.readouterr().out


def test_cells_without_room_or_model_are_refused_before_anything_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ["grid", "--preset", "paper", "--only", "single-sa-code-4B", "--out", str(tmp_path)]
    assert main([*grid, "--gpu", "8GB"]) == 1
    said = capsys.readouterr().out
    assert "single-sa-code-4B-seed0 cannot be run: it does not fit" in said
    assert "voting-transfer-code-4B-seed0 cannot be run: it needs the adapter of single-sa" in said
    assert main(grid) == 1
    said = capsys.readouterr().out
    assert "cannot be run: there is no model in models/Qwen3-4B: put it there, or set" in said
    assert not (tmp_path / "logs").exists()


def test_devices_are_dealt_out() -> None:
    eight = [str(i) for i in range(8)]
    assert launch(jobs=None, ranks=1, visible=[]) == Launch(2)
    assert launch(jobs=None, ranks=2, visible=eight[:5]) == Launch(2, 2, ("0,1", "2,3"))
    assert launch(jobs=3, ranks=1, visible=eight) == Launch(3, 1, ("0", "1", "2"))
    with pytest.raises(SettingsError, match="--jobs 3 of --gpus 4 each need 12 GPUs, and 8 are"):
        launch(jobs=3, ranks=4, visible=eight)
    with pytest.raises(SettingsError, match="must be at least 1"):
        launch(jobs=0, ranks=1, visible=eight)


@pytest.mark.slow
def test_a_cell_of_the_papers_grid_is_run_by_two_processes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings = {
        "model": {"path": str(make_chat_model(tmp_path / "model")), "dtype": "float32"},
        "task": {"source": str(ROWS / "dapo_math.jsonl")},
        "lora": {"rank": 2},
        "rollout": {"engine": "transformers", "problems": 2, "copies": 2, "max_new_tokens": 4},
        "train": {"steps": 1},
        "validation": {"every": 0},
        "checkpoint": {"every": 0},
    }
    words = [f"--set={key}={json.dumps(value)}" for key, value in settings.items()]
    grid = ["grid", "--preset", "paper", "--only", "voting-ip-math-0.6B", *words]
    grid += ["--gpu", "80GB", "--gpus", "2", "--jobs", "1", "--out", str(tmp_path / "runs")]
    assert main(grid) == 0
    log = (tmp_path / "runs" / "logs" / "voting-ip-math-0.6B-seed0.txt").read_text()
    assert "2 processes, ddp" in log
    assert main(grid) == 0
    assert "1 of 1 finished, 0 to do" in capfd.readouterr().out
