import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.detect.suite import replay
from roledrift.errors import ConfigError, RoleDriftError, StoreError
from roledrift.ingest import formats, named, sniff
from roledrift.ingest.importing import as_json, import_run, job_for, remarks, summary
from roledrift.store.reader import open_run
from tests.ingest.logs import FIXTURES, episode, imported, paper_dump, trajectory, voting


def inflating(root: Path) -> Path:
    """A dump in which the aggregator's answers grow from step 120 on."""
    episodes = {}
    for step in range(0, 200, 10):
        long = step if step >= 120 else 0
        episodes[step] = [
            episode(
                n,
                *[trajectory(f"generator{i}", "\\boxed{5}", tokens=50 + i + n) for i in range(3)],
                trajectory("aggregator", "\\boxed{1}" + " hmm" * long, tokens=5 + n % 2 + long),
            )
            for n in range(4)
        ]
    return paper_dump(root, episodes)


def test_a_foreign_dump_is_judged_like_a_run_of_our_own(tmp_path: Path) -> None:
    _, run = imported(inflating(tmp_path / "dump"), tmp_path / "run")
    assert run.state == "finished"
    assert run.problems == ()
    found = replay(run.steps(), run.header.workflow)
    assert [(one.finding, one.role, one.onset) for one in found.alerts if one.state == "open"] == [
        ("length_inflation", "aggregator", 120)
    ]


def test_the_same_source_gives_the_same_steps(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {0: [voting(0)], 10: [voting(0)]})
    written = []
    for name in ("a", "b"):
        imported(dump, tmp_path / name)
        lines = (tmp_path / name / "steps.import.jsonl").read_text().splitlines()
        written.append([line for line in lines if '"kind":"step"' in line])
    assert written[0] == written[1]


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {0: [voting(0)]})
    dry = import_run(sniff(dump), job_for(dump), None)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["dump"]
    wet = import_run(sniff(dump), job_for(dump), tmp_path / "run")
    assert dry.plain() | {"out": ""} == wet.plain() | {"out": ""}
    assert json.loads(as_json([dry], {}))["runs"][0]["columns"]["text"] == 4
    assert summary(dry) == (
        "paper: 1 step (0 to 0), 4 spans of generator x3, aggregator; isolated policies"
    )
    said = remarks(dry)
    assert said[0] == (
        "not in it: log-probabilities, entropy, of single roles; so no verdict of "
        "rollout_engine, policy_movement, entropy_collapse, entropy_floor"
    )
    assert "log-probabilities: in the training's wandb run" in said[1]


def test_routing_can_be_said(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {0: [voting(0)]})
    done = import_run(sniff(dump), job_for(dump), None, routing="shared")
    assert done.workflow.routing == "shared"


def test_a_failed_import_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "0.jsonl"
    source.write_text('{"input": 1, "output": ')
    with pytest.raises(StoreError, match=r"holds no step; broken or half-written JSON: 1"):
        import_run(named("verl"), job_for(source), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_taken_directory_is_refused(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {0: [voting(0)]})
    imported(dump, tmp_path / "run")
    with pytest.raises(StoreError, match="a run is here already"):
        imported(dump, tmp_path / "run")
    with pytest.raises(StoreError, match="holds something else"):
        imported(dump, tmp_path / "dump")


def test_what_is_not_recognised(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is empty"):
        sniff(tmp_path)
    (tmp_path / "a").write_text("")
    with pytest.raises(StoreError, match="is empty"):
        sniff(tmp_path / "a")
    (tmp_path / "a").write_text("a")
    with pytest.raises(StoreError, match="not recognised as any of"):
        sniff(tmp_path)
    with pytest.raises(StoreError, match="no such file"):
        sniff(tmp_path / "no")
    with pytest.raises(ConfigError, match="did you mean 'wandb'"):
        named("wandbb")
    assert list(formats()) == [form.name for form in formats().values()]


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {0: [voting(0, pick="\\ud800 \\boxed{1}")]})
    file = next((dump / "step_0").iterdir())
    file.write_text(file.read_text().replace("\\\\ud800", "\\ud800"))
    _, run = imported(dump, tmp_path / "run")
    assert any("boxed{1}" in one.text for one in run.samples())


def test_of_several_formats_in_a_folder_the_others_are_named(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "paper" / "voting-qwen3_1.7b-multi_lora-math", tmp_path / "s")
    shutil.copytree(FIXTURES / "paper-wandb" / "isolated" / "wandb", tmp_path / "s" / "wandb")
    form, reason = sniff(tmp_path / "s")
    assert form.name == "paper"
    assert reason.endswith(
        "also here, and not read: wandb (2 wandb folder(s) of 1 run(s)); --as NAME"
    )


def test_every_recorded_log_is_of_one_format_and_its_writer_is_documented() -> None:
    book = json.loads((FIXTURES / "written_by.json").read_text())
    assert {one.name for one in FIXTURES.iterdir() if one.is_dir()} == set(book)
    page = (FIXTURES.parents[2] / "docs" / "integrations" / "importing.md").read_text()
    for name, who in book.items():
        assert who["version"] in page, who
        if name in ("paper", "mlflow", "trackio"):
            continue  # several runs
        source = FIXTURES / name / "isolated" if name == "paper-wandb" else FIXTURES / name
        form, reason = sniff(source)
        assert "also here" not in reason
        done = import_run((form, reason), job_for(source), None)
        assert done.tally.steps


@settings(max_examples=60, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(["a.jsonl", "0.jsonl", "a.log", "trainer_state.json", "x.wandb"]),
)
def test_garbage_is_refused_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, raw: bytes, name: str
) -> None:
    folder = tmp_path_factory.mktemp("g")
    (folder / name).write_bytes(raw)
    for form in formats().values():
        for source in (folder, folder / name):
            form.sniff(source)
            if form.name == "table":
                continue
            with pytest.raises(RoleDriftError):
                import_run((form, "forced"), job_for(source), folder / "run")
    with pytest.raises(StoreError):
        open_run(folder / "run")
