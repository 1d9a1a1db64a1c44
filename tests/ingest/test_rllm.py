import json
from pathlib import Path

import pytest

from roledrift.ingest import sniff
from tests.ingest.logs import imported, read, spans, write_lines


def log(root: Path, mode: str, step: int, number: int, right: bool = True) -> None:
    """One episode file after the layout of rllm's episode logger (no token counts)."""
    steps = [
        {
            "observation": None,
            "thought": "",
            "action": "x",
            "reward": 1.0,
            "done": True,
            "model_response": "\\boxed{5}",
            "chat_completions": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "\\boxed{5}"},
            ],
        }
    ]
    names = ("generator0", "generator1", "aggregator")
    body = {
        "training_step": step,
        "epoch": 0,
        "episode_id": f"t:{number}",
        "task": {"question": "q", "ground_truth": "5"},
        "task_hash": "abcd1234",
        "is_correct": right,
        "termination_reason": "env_done",
        "trajectories": [
            {"name": name, "uid": "u", "reward": 1.0, "num_steps": 1, "steps": steps}
            for name in names
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
    assert first.stat("generator", "length") is None
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
