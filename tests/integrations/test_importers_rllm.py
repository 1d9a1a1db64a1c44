import json
from pathlib import Path

import pytest

from roledrift.ingest import sniff
from roledrift.records import LENGTH_UNIT
from tests.ingest.logs import FIXTURES, imported, read, spans, write_lines

TRAIN = FIXTURES / "rllm" / "episodes" / "train_step_1_epoch_0"


def test_what_rllm_itself_wrote(tmp_path: Path) -> None:
    done, run = imported(FIXTURES / "rllm", tmp_path / "run")
    assert (done.format, done.tally.steps, done.tally.spans, done.odd) == ("rllm", 2, 24, {})
    assert [(one.name, one.slots) for one in done.workflow.roles] == [
        ("solver", 2),
        ("aggregator", 1),
    ]
    first, second = run.steps()
    told = [json.loads(file.read_text()) for file in sorted(TRAIN.glob("episode_*.json"))]
    right = sum(one["is_correct"] for one in told) / len(told)
    # Grading again finds what rLLM stored: the aggregator's choice is the outcome.
    assert run.header.notes["graded again"] == "8 episodes; 0 disagree with the stored outcome"
    assert first.mean("aggregator", "correct") == first.mean("aggregator", "reward") == right
    assert first.mean("solver", "correct") == sum(
        one["metrics"]["solver_acc"] for one in told
    ) / len(told)
    assert second.totals["val_accuracy"] in (0.0, 1.0)
    assert done.tally.columns["correct"] == 24


def test_the_training_log_of_the_papers_code(tmp_path: Path) -> None:
    done, run = imported(FIXTURES / "paper-training", tmp_path / "run")
    assert (done.format, done.workflow.name, done.tally.spans) == ("rllm", "voting", 31)
    assert done.odd == {"episode ended by max_prompt_length_exceeded": 1}
    assert [one.step for one in run.steps()] == [1, 11]


def log(root: Path, mode: str, step: int, number: int, right: bool = True) -> None:
    """One more episode of the kind that rLLM wrote."""
    body = json.loads(next(TRAIN.glob("episode_*.json")).read_text())
    names = ("generator0", "generator1", "aggregator")
    body |= {
        "training_step": step,
        "episode_id": f"t:{number}",
        "is_correct": right,
        "trajectories": [
            {**one, "name": name, "steps": [{**one["steps"][0], "reward": 1.0}]}
            for name, one in zip(names, body["trajectories"], strict=True)
        ],
    }
    folder = root / "episodes" / f"{mode}_step_{step}_epoch_0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"episode_hashabcd1234_idt_{number}.json").write_text(json.dumps(body))


def test_an_episode_log(tmp_path: Path) -> None:
    source = tmp_path / "log"
    for step in (1, 2):
        for number in range(3):
            log(source, "train", step, number)
    log(source, "val", 2, 0)
    log(source, "val", 2, 1, right=False)
    log(source, "train", 2, 9)
    odd = source / "episodes" / "train_step_2_epoch_0" / "episode_hashabcd1234_idt_9.json"
    odd.write_text(odd.read_text().replace('"training_step": 2', '"training_step": 3'))
    write_lines(source / "x.jsonl", [{"step": 1, "data": {"actor/grad_norm": 2.0}}, {"step": "x"}])
    assert sniff(source)[0].name == "rllm"
    done, run = imported(source, tmp_path / "run")
    first, second = run.steps()
    assert (first.step, second.step) == (1, 2)
    assert first.mean("generator/1", "reward") == 1
    assert first.mean("*", "grad_norm") == 2
    assert first.stat("generator", "length") == first.stat("generator", "chars")
    assert first.labels[LENGTH_UNIT] == "characters"
    assert "tokens_N" in first.missing
    assert second.totals["val_accuracy"] == pytest.approx(0.5)
    assert second.faults == {"episode of another step": 1}
    assert done.odd["row that is no {step, data}"] == 1


def test_steps_of_a_trajectory_are_turns_and_not_slots(tmp_path: Path) -> None:
    log(tmp_path, "train", 1, 0)
    (file,) = (tmp_path / "episodes" / "train_step_1_epoch_0").iterdir()
    body = json.loads(file.read_text())
    for one in body["trajectories"]:
        one["name"] = one["name"].rstrip("01")
        one["steps"] *= 3
    file.write_text(json.dumps(body))
    rows = spans(read(tmp_path)[0])
    assert [(row.role, row.slot, row.turn) for row in rows] == [
        *[("generator", slot, turn) for slot in (0, 1) for turn in (0, 1, 2)],
        *[("aggregator", 0, turn) for turn in (0, 1, 2)],
    ]


def test_groups_are_those_of_the_advantages(tmp_path: Path) -> None:
    for number in range(2):
        log(tmp_path, "train", 1, number)
    events, _ = read(tmp_path)
    rows = spans(events)
    assert len({row.group for row in rows}) == 3
    assert len({row.episode for row in rows}) == 2
