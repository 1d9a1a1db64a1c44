from pathlib import Path

from roledrift.ingest import formats
from roledrift.ingest.tree import Found, find
from tests.ingest import trees
from tests.ingest.logs import write_lines
from tests.ingest.test_verl import dump as verl_dump


def found(root: Path) -> dict[str, Found]:
    return {one.name: one for one in find(root, formats())}


def kinds(one: Found) -> list[str]:
    return [source.form.name for source in one.sources]


def test_a_run_per_experiment(tmp_path: Path) -> None:
    there = found(trees.paper_tree(tmp_path))
    assert sorted(there) == sorted(
        [
            trees.IP,
            f"{trees.IP} on aime2025",
            trees.SP,
            trees.TRANSFER,
            trees.SINGLE,
            trees.ORCH,
            trees.JUDGED,
        ]
    )
    assert sorted(found(tmp_path / trees.DUMPS)) == sorted(there)


def test_a_base_without_a_training_stays(tmp_path: Path) -> None:
    trees.dump(tmp_path, trees.BASE, {0: 1}, trees.voting, n=2)
    trees.dump(tmp_path, trees.JUDGED, {10: 1}, trees.judged, n=2)
    assert sorted(found(tmp_path)) == sorted([trees.BASE, trees.JUDGED])


def test_one_experiment_is_no_tree(tmp_path: Path) -> None:
    folder = trees.dump(tmp_path, trees.IP, {10: 1}, trees.voting, n=2)
    for source in (tmp_path, folder, folder.parent):
        assert len(found(source)) == 1
    assert found(tmp_path / "nothing") == {}


def test_a_log_and_a_dump_of_one_name_are_one(tmp_path: Path) -> None:
    trees.dump(tmp_path, trees.IP, {10: 1}, trees.voting, n=2)
    logs = tmp_path / "wandb"
    trees.console(logs / "run-20260101_000000-abc", {1: {"actor/grad_norm": 1}}, name=trees.IP)
    trees.console(logs / "run-20260102_000000-xyz", {1: {"actor/grad_norm": 1}})
    there = found(tmp_path)
    assert sorted(there) == sorted([trees.IP, "xyz"])
    assert kinds(there[trees.IP]) == ["paper", "wandb"]


def test_two_trainings_of_one_name_stay_two(tmp_path: Path) -> None:
    """Which of the two the dump is of, nobody says."""
    trees.dump(tmp_path, trees.IP, {10: 1}, trees.voting, n=2)
    for name in ("abc", "xyz"):
        folder = tmp_path / "wandb" / f"run-20260101_000000-{name}"
        trees.console(folder, {1: {"actor/grad_norm": 1}}, name=trees.IP)
    assert [kinds(one) for one in found(tmp_path).values()].count(["wandb"]) == 2
    assert len(found(tmp_path)) == 3


def test_starts_of_one_run_are_one(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"run-2026010{day}_000000-abc"
        trees.console(folder, {day: {"actor/grad_norm": 1}})
    assert list(found(tmp_path)) == ["abc"]


def test_a_folder_of_verl_dumps(tmp_path: Path) -> None:
    verl_dump(tmp_path / "a")
    verl_dump(tmp_path / "b" / "rollout_data")
    write_lines(tmp_path / "logs" / "b.jsonl", [{"step": 1, "data": {"actor/grad_norm": 1.0}}])
    write_lines(tmp_path / "logs" / "c.jsonl", [{"step": 1, "data": {"actor/grad_norm": 1.0}}])
    there = found(tmp_path)
    assert sorted(there) == ["a", "b", "c"]
    assert [one.path.name for one in there["b"].sources] == ["b", "b.jsonl"]
    # The console beside the file logger is of the same experiment.
    (tmp_path / "logs" / "c.log").write_text("step:1 - actor/entropy:0.5\n")
    assert len(found(tmp_path)["c"].sources) == 2


def test_results_without_dumps(tmp_path: Path) -> None:
    rows = [trees.result(trees.IP, 10, 0.5), trees.result(trees.BASE, 0, 0.2)]
    trees.results(tmp_path, *rows, trees.result(trees.SP, 10, 0.4))
    there = found(tmp_path)
    assert sorted(there) == sorted([trees.IP, trees.SP])
    trees.dump(tmp_path, trees.SP, {10: 1}, trees.voting, n=2)
    assert found(tmp_path)[trees.SP].sources[0].path.is_dir()


def test_other_trainers_runs(tmp_path: Path) -> None:
    state = '{"log_history": [{"step": 1, "reward": 0.5}]}'
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trainer_state.json").write_text(state)
    (tmp_path / "circle").symlink_to(tmp_path)
    assert sorted(found(tmp_path)) == ["a", "b"]
