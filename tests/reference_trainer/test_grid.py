import io
import json
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from reference_trainer.__main__ import main
from reference_trainer.children import Launch, Say
from reference_trainer.errors import SettingsError
from reference_trainer.grid import Cell, Choice, cell_settings, cells, choose, list_jobs
from reference_trainer.grid_results import summary
from roledrift import build_report, open_run
from roledrift.report.write import write_report

TINY = (
    "pretrain.size=S",
    "pretrain.steps=40",
    "pretrain.rows=16",
    "pretrain.lr=6e-3",
    "rollout.problems=2",
    "rollout.copies=4",
    "rollout.max_new_tokens=16",
    "train.steps=1",
    "validation.problems=4",
)


def test_there_are_36_cells_and_6_controls() -> None:
    every = cells()
    assert len({cell.name for cell in every}) == len(every) == 42
    assert sum(cell.workflow == "single" for cell in every) == 6
    assert Cell("voting", "ip", "math", "M") in every
    assert Cell("orch_workers", "sp", "code", "L") in every


def test_shards_are_disjoint_and_complete() -> None:
    every = cells()
    whole = choose(every, Choice(seeds=(0, 1)))
    parts = [choose(every, Choice(seeds=(0, 1), shard=(i, 5))) for i in range(1, 6)]
    assert sorted(whole, key=str) == sorted((one for part in parts for one in part), key=str)
    assert len(whole) == 84


def test_cells_are_chosen_by_pattern() -> None:
    chosen = choose(cells(), Choice(only=("voting-*-M", "single-*-code-S")))
    assert {cell.name for cell, _ in chosen} == {
        "voting-sp-math-M",
        "voting-ip-math-M",
        "voting-sp-code-M",
        "voting-ip-code-M",
        "single-sa-code-S",
    }
    with pytest.raises(SettingsError, match="the cells are single-sa-math-S"):
        choose(cells(), Choice(only=("nothing",)))
    with pytest.raises(SettingsError, match="shards are 1/2 to 2/2"):
        choose(cells(), Choice(shard=(3, 2)))


def test_later_tables_win() -> None:
    settings = {
        "common": {"train": {"steps": 1, "minibatch": 2}},
        "scale": {"M": {"train": {"steps": 3}}},
        "workflow": {"voting": {"train": {"minibatch": 4}}},
    }
    values = cell_settings(settings, Cell("voting", "ip", "math", "M"))
    assert values == {
        "train": {"steps": 3, "minibatch": 4},
        "workflow": "voting",
        "routing": "isolated",
    }


def test_the_preset_resolves() -> None:
    (job,) = list_jobs("tiny", Choice(only=("voting-sp-math-L",), seeds=(3,)))
    assert job.config is not None
    assert (job.name, job.config.name) == ("voting-sp-math-L-seed3", "voting-sp-math-L-seed3")
    assert (job.config.pretrain.size, job.config.routing, job.config.seed) == ("L", "shared", 3)
    with pytest.raises(SettingsError, match="no grid preset 'huge'"):
        list_jobs("huge", Choice())


def test_a_cell_that_cannot_be_run_is_listed_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = ["grid", "--out", str(tmp_path), "--only", "single-sa-math-S", "--set", "task.colour=1"]
    assert main([*grid, "--dry-run"]) == 0
    assert "single-sa-math-S-seed0 " in (said := capsys.readouterr().out)
    assert "cannot be run: configuration: unknown key 'task.colour'" in said
    assert main(grid) == 1
    assert "0 failed, 1 cannot be run" in capsys.readouterr().out


def run_here(
    commands: Sequence[Sequence[str]],
    *,
    launch: Launch,
    say: Say,
    done: Callable[[int, int], None] | None = None,
) -> list[int]:
    """As ``run_all``, in this process: nine starts of torch would be most of the time."""
    codes = []
    for number, command in enumerate(commands):
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            codes.append(main(command))
        for line in printed.getvalue().splitlines():
            say(number, line)
        if done is not None:
            done(number, codes[-1])
    return codes


@pytest.mark.slow
def test_a_grid_runs_once_and_goes_on(
    cache: Path,
    base_folder: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reference_trainer.grid.run_all", run_here)
    grid = ["grid", "--out", str(tmp_path), "--cache", str(cache), "--only", "single-sa-math-S"]
    grid += [part for setting in TINY for part in ("--set", setting)]
    assert main(grid) == 0
    rows = {row["run"]: row for row in json.loads((tmp_path / "grid.json").read_text())}
    row = rows.pop("single-sa-math-S-seed0")
    assert (row["status"], row["steps"]) == ("finished", 1)
    assert row["before"] is not None
    evaluated = {name: one["step"] for name, one in row["evaluated"].items()}
    assert evaluated == {"base": 0, "early": 1, "best": 1, "last": 1}
    assert {one["problems"] for one in row["evaluated"].values()} == {100}
    # The adapter of the single role is evaluated in the three workflows, and not trained.
    assert rows.keys() == {
        f"{name}-transfer-math-S-seed0" for name in ("voting", "eval_opt", "orch_workers")
    }
    assert {(one["status"], one["steps"]) for one in rows.values()} == {("finished", 0)}
    assert "4 to do" in capfd.readouterr().out
    of_single = tmp_path / "single-sa-math-S-seed0" / "trainer" / "adapters" / "shared"
    taken = tmp_path / "orch_workers-transfer-math-S-seed0" / "trainer" / "adapters" / "worker"
    one, other = (load_file(folder / "adapter_model.safetensors") for folder in (of_single, taken))
    assert one.keys() == other.keys()
    assert all((one[name] == other[name]).all() for name in one)
    assert (
        open_run(tmp_path / "voting-transfer-math-S-seed0").header.notes["transfer"] == "generator"
    )
    write_report(build_report(tmp_path, paper=True), tmp_path / "page")
    page = (tmp_path / "page" / "index.html").read_text()
    assert "Table 3: a single-role adapter inside the workflows" in page
    assert main(grid) == 0
    assert "4 of 4 finished, 0 to do" in capfd.readouterr().out
    # More iterations are another configuration of a finished run: it is left as it is. A run that
    # is not finished and has other settings is refused by its process, and the grid says so.
    (tmp_path / "single-sa-math-S-seed0" / "trainer" / "finished.json").unlink()
    assert main([*grid, "--set", "rollout.copies=2"]) == 1
    said = capfd.readouterr().out
    assert "rollout.copies was 4, is 2" in said
    assert "1 failed, 0 cannot be run" in said
    assert summary(tmp_path)[2]["status"] == "begun"


def test_a_failed_run_fits_a_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_all(commands: Sequence[object], *, say: Say, **_: object) -> list[int]:
        say(0, "error: " + "a long story " * 1000)
        return [2] * len(commands)

    monkeypatch.setattr("reference_trainer.grid.run_all", run_all)
    grid = ["grid", "--out", str(tmp_path), "--cache", str(tmp_path), "--only", "single-sa-math-S"]
    assert main(grid) == 1
    said = capsys.readouterr().out
    assert "single-sa-math-S-seed0 failed with exit code 2: error: a long story" in said
    assert max(map(len, said.splitlines())) < 500
    (log, *_) = (line.rpartition(" ")[2] for line in said.splitlines() if "output is in" in line)
    assert len(Path(log).read_text()) > 10_000


def test_an_interrupted_grid_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_all(*_: object, **__: object) -> list[int]:
        raise KeyboardInterrupt

    monkeypatch.setattr("reference_trainer.grid.run_all", run_all)
    grid = ["grid", "--out", str(tmp_path), "--cache", str(tmp_path), "--only", "single-sa-*-S"]
    assert main(grid) == 130
    said = capsys.readouterr().err
    assert "grid: interrupted; 0 of 8 runs are finished. The same command goes on" in said
    assert json.loads((tmp_path / "grid.json").read_text()) == []
