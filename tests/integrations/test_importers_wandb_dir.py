import shutil
from pathlib import Path
from typing import Any

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from tests.ingest.logs import imported, read, series
from tests.integrations.test_importers_wandb_log import write


def numbers(step: int, shift: float = 0.0) -> dict[str, Any]:
    return {
        "actor/generator/chi2_token": 0.01 * step + shift,
        "actor/generator/training_ppl": 1.5,
        "actor/aggregator/chi2_token": 0.02,
        "actor/entropy": 0.4,
        "batch/success": 0.5,
        "batch/aggregator_acc": 0.5,
        "timing_s/step": 1.0,
        **({"val/unknown/pass@1": 0.1} if step % 5 == 0 else {}),
    }


def test_segments_of_a_resumed_run_are_stitched(tmp_path: Path) -> None:
    """Two folders by the real wandb under one id; the second replays steps 8 and 9."""
    named = {"experiment_name": "voting-qwen3_0.6b-multi_lora-deepcoder"}
    first = write(tmp_path / "one", "xyz", [(s, numbers(s)) for s in range(10)], seed=7)
    second = write(
        tmp_path / "two", "xyz", [(s, numbers(s, 100)) for s in range(8, 14)], trainer=named
    )
    folder = tmp_path / "wandb"
    shutil.copytree(first, folder / "run-20260101_000000-xyz")
    shutil.copytree(second, folder / "run-20260102_000000-xyz")
    console = folder / "run-20260102_000000-xyz" / "files" / "output.log"
    console.parent.mkdir(exist_ok=True)
    console.write_text("step:12 - actor/grad_norm:9\nstep:20 - actor/generator/chi2_token:0.5\n")
    for source in (folder, folder / "run-20260101_000000-xyz", tmp_path):
        assert sniff(source)[0].name == "wandb"
    done, run = imported(folder, tmp_path / "run")
    chi2 = {one.step: one.mean("generator", "rollout.chi2") for one in run.steps()}
    assert chi2[7] == pytest.approx(0.07)
    assert chi2[8] == pytest.approx(100.08)
    assert chi2[20] == 0.5
    assert run.steps()[12].mean("*", "grad_norm") == 9
    assert run.steps()[5].totals["val_accuracy"] == 0.1
    stat = run.steps()[0].stat("aggregator", "rollout.chi2")
    assert stat is not None
    assert (stat.n, stat.mean) == (1, 0.02)
    assert run.steps()[0].labels["source"] == "foreign series"
    assert (done.workflow.name, done.workflow.routing) == ("voting", "isolated")
    assert (run.header.seed, run.header.notes["segments"]) == (7, "2 process starts, at steps 0, 8")
    assert run.steps()[12].mean("*", "step_time") is not None
    assert (run.header.run, run.header.scale, run.header.task) == (
        named["experiment_name"],
        "0.6b",
        "deepcoder",
    )
    assert imported(folder / "run-20260101_000000-xyz", tmp_path / "r2")[0].tally.last == 20


def test_a_shared_policy_says_that_its_numbers_are_of_all_roles(tmp_path: Path) -> None:
    folder = tmp_path / "run-20260101_000000-a" / "files"
    folder.mkdir(parents=True)
    line = "step:{} - rollout_corr/chi2_token:0.1 - actor/grad_norm:2 - batch/evaluator_acc:0.5\n"
    (folder / "output.log").write_text("".join(line.format(s) for s in range(3)))
    done, run = imported(tmp_path, tmp_path / "run")
    assert (done.workflow.role_names, done.workflow.routing) == (
        ("generator", "evaluator"),
        "shared",
    )
    assert run.steps()[0].mean("*", "rollout.chi2") == 0.1
    assert "all roles together" in run.header.notes["roles"]


def test_several_runs_need_a_choice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / f"run-20260101_000000-{name}" / "files"
        folder.mkdir(parents=True)
        (folder / "output.log").write_text("step:0 - actor/grad_norm:1\n")
    with pytest.raises(StoreError, match="holds 2 wandb runs"):
        imported(tmp_path, tmp_path / "run")
    events, _ = read(tmp_path / "run-20260101_000000-b")
    assert len(series(events)) == 1


def test_trl_through_wandb_uses_the_trainers_step(tmp_path: Path) -> None:
    rows = [(s, {"train/global_step": s * 10, "train/reward": 0.5}) for s in range(3)]
    folder = write(tmp_path, "t", rows)
    events, _ = read(folder / "run-t.wandb")
    found = series(events)
    assert [(one.step, one.totals["reward"]) for one in found] == [(s * 10, 0.5) for s in range(3)]
    assert {name for one in found for name in one.totals} == {"reward", "clock", "runtime"}


def write_console(folder: Path, *steps: int) -> Path:
    files = folder / "files"
    files.mkdir(parents=True)
    text = "".join(f"step:{step} - actor/generator/chi2_token:0.1\n" for step in steps)
    (files / "output.log").write_text(text)
    return folder


def test_a_second_start_within_a_second(tmp_path: Path) -> None:
    """wandb calls the second folder ``...-<id>-1``; the id stands in the name of the log."""
    first = write(tmp_path / "one", "xyz", [(s, numbers(s)) for s in range(4)])
    second = write(tmp_path / "two", "xyz", [(s, numbers(s)) for s in range(4, 6)])
    folder = tmp_path / "wandb"
    shutil.copytree(first, folder / "offline-run-20260101_000000-xyz")
    shutil.copytree(second, folder / "offline-run-20260101_000000-xyz-1")
    assert sniff(folder)[1] == "2 wandb folder(s) of 1 run(s)"
    for source in (folder, folder / "offline-run-20260101_000000-xyz-1"):
        assert [one.step for one in series(read(source)[0])] == list(range(6))


def test_one_segment_stands_for_its_run(tmp_path: Path) -> None:
    """The log of a resumed start alone has the drift in its baseline and lacks its slots."""
    first = write(tmp_path / "one", "xyz", [(s, numbers(s)) for s in range(8)])
    second = write(tmp_path / "two", "xyz", [(s, numbers(s)) for s in range(8, 12)])
    folder = tmp_path / "wandb"
    shutil.copytree(first, folder / "run-20260101_000000-xyz")
    resumed = folder / "run-20260102_000000-xyz"
    shutil.copytree(second, resumed)
    events, job = read(resumed / "run-xyz.wandb")
    assert [one.step for one in series(events)] == list(range(12))
    assert "start" not in job.facts.notes


def test_a_segment_whose_beginning_is_elsewhere_asks_for_it(tmp_path: Path) -> None:
    done, run = imported(write_console(tmp_path / "run-20260102_000000-a", 18, 19, 20),
                         tmp_path / "late")  # fmt: skip
    assert "begins at step 18" in done.notes["start"]
    assert "put its folder (run-<date>-<id>, the same id) beside" in run.header.notes["start"]
    # A log of every tenth step begins at the tenth.
    for name, steps in (("b", (10, 20, 30)), ("c", (1, 2)), ("d", (0, 5, 10))):
        source = write_console(tmp_path / name / f"run-20260102_000000-{name}", *steps)
        assert "start" not in imported(source, tmp_path / f"of-{name}")[0].notes
