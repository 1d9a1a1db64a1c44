import json
import re
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.ingest import sniff
from tests.ingest.logs import (
    FIXTURES,
    episode,
    imported,
    paper_dump,
    read,
    series,
    spans,
    trajectory,
    voting,
    write_lines,
)

DUMPS = {
    "voting-qwen3_1.7b-multi_lora-math": ("voting", "isolated", 31),
    "evaluator_optimizer-qwen3_0.6b-share_policy-math": ("eval_opt", "shared", 26),
    "orchestrator_workers-qwen3_4b-share_policy-math": ("orch_workers", "shared", 28),
}


@pytest.mark.parametrize("name", DUMPS)
def test_what_the_papers_code_itself_wrote(name: str, tmp_path: Path) -> None:
    """Three of its workflows, each with its eval_results.jsonl."""
    workflow, routing, spans_ = DUMPS[name]
    source = FIXTURES / "paper" / name
    done, run = imported(source, tmp_path / "run")
    assert (done.workflow.name, done.workflow.routing) == (workflow, routing)
    assert (done.tally.spans, run.header.task, run.header.scale) == (
        spans_, "math", re.search(r"qwen3_([^-]+)", name)[1],
    )  # fmt: skip
    # Grading again agrees with the code's own grading, and with the accuracy that it stored for
    # the lengths of the training (the rows for longer answers, all 0 here, give way).
    assert run.header.notes["graded again"] == "8 episodes; 0 disagree with the stored outcome"
    for record in run.steps():
        outcomes = [
            json.loads(file.read_text())["is_correct"]
            for file in sorted((source / "dapo_math" / f"step_{record.step}").glob("*.json"))
        ]
        assert record.totals["val_accuracy"] == pytest.approx(sum(outcomes) / 4)
    if workflow == "voting":
        assert done.odd == {"episode ended by max_prompt_length_exceeded": 1}
        assert "in all 7 episodes" in run.header.notes["rewards"]
    else:
        assert done.odd == {}


def test_the_console_of_the_papers_code(tmp_path: Path) -> None:
    """Two starts of one run; the second repeats steps 4 and 5, and counts."""
    for name, routing in (("isolated", "isolated"), ("shared", "shared")):
        done, run = imported(FIXTURES / "paper-wandb" / name, tmp_path / name)
        assert (done.format, done.workflow.name, done.workflow.routing) == (
            "wandb", "voting", routing,
        )  # fmt: skip
        assert run.header.notes["segments"] == "2 process starts, at steps 0, 4"
        group = "generator" if name == "isolated" else "*"
        chi2 = [one.mean(group, "rollout.chi2") for one in run.steps()]
        assert chi2 == pytest.approx([0.1, 0.11, 0.12, 0.13, *(0.64 + n / 100 for n in range(5))])
        last = run.steps()[-1]
        assert last.mean(group, "rollout.ppl_ratio") == pytest.approx(1.09 + 0.58)
        assert last.mean(group, "grad_norm") == pytest.approx(0.5 + 0.58)
        assert last.mean(group, "rollout.k1") == pytest.approx(0.01 + 0.58)
        assert last.mean("*", "entropy") == pytest.approx(0.4 + 0.58)
        assert last.mean("generator", "correct") == pytest.approx(0.6 + 0.58)
        assert run.steps()[6].totals["val_accuracy"] == 0.36
        assert run.steps()[5].totals.get("val_accuracy") is None


def test_a_dump_is_recognised_at_every_level(tmp_path: Path) -> None:
    dataset = paper_dump(tmp_path, {0: [voting(0)], 10: [voting(0)]})
    for source in (tmp_path, dataset.parent, dataset, dataset / "step_10"):
        form, reason = sniff(source)
        assert (form.name, "episode files" in reason) == ("paper", True)


def test_spans_of_a_voting_episode(tmp_path: Path) -> None:
    events, job = read(paper_dump(tmp_path, {10: [voting(3, "546", pick="\\boxed{2}")]}))
    rows = spans(events)
    assert [(row.role, row.slot, row.turn) for row in rows] == [
        ("generator", 0, 0),
        ("generator", 1, 0),
        ("generator", 2, 0),
        ("aggregator", 0, 0),
    ]
    last = rows[-1]
    # What the aggregator wrote, and not the candidate that it chose (`action`).
    assert (last.text, last.tokens, last.truncated, last.step) == ("\\boxed{2}", 4, False, 10)
    assert [row.shares["correct"] for row in rows] == [True, False, False, False]
    assert (job.facts.routing, job.facts.scale, job.facts.task) == ("isolated", "1.7b", "math")


def test_an_import_says_that_rewards_are_broadcast(tmp_path: Path) -> None:
    dump = paper_dump(tmp_path / "dump", {s: [voting(n) for n in range(4)] for s in (0, 10)})
    done, run = imported(dump, tmp_path / "run")
    assert (done.tally.steps, done.tally.spans) == (2, 32)
    assert run.header.workflow.name == "voting"
    assert run.header.workflow.routing == "isolated"
    assert "the outcome of the workflow" in run.header.notes["rewards"]
    assert run.header.notes["graded again"] == "8 episodes; 0 disagree with the stored outcome"
    record = run.steps()[1]
    assert record.mean("generator", "correct") == pytest.approx(2 / 3)
    assert record.mean("generator/2", "correct") == 0
    assert record.mean("aggregator", "correct") == 1
    assert record.mean("aggregator", "terse") == 1
    assert "aggregator/0" not in record.groups
    assert {one.policy for one in run.samples()} == {"generator", "aggregator"}


def test_rounds_are_turns_and_unindexed_slots_are_slots(tmp_path: Path) -> None:
    rounds = episode(
        0,
        trajectory("generator", "\\boxed{4}"),
        trajectory("evaluator", "\\boxed{Incorrect}"),
        trajectory("generator", "\\boxed{5}"),
        trajectory("evaluator", "\\boxed{Correct}"),
    )
    workers = episode(
        1, trajectory("orchestrator", "x"), *[trajectory("worker", "\\boxed{5}")] * 2,
        trajectory("synthesizer", "\\boxed{5}"),
    )  # fmt: skip
    events, _ = read(paper_dump(tmp_path, {0: [rounds, workers]}))
    found = [(row.role, row.slot, row.turn) for row in spans(events)]
    assert found == [
        ("generator", 0, 0), ("evaluator", 0, 0), ("generator", 0, 1), ("evaluator", 0, 1),
        ("orchestrator", 0, 0), ("worker", 0, 0), ("worker", 1, 0), ("synthesizer", 0, 0),
    ]  # fmt: skip


def test_what_is_odd_is_counted(tmp_path: Path) -> None:
    dataset = paper_dump(
        tmp_path,
        {
            0: [
                voting(0),
                episode(1, termination_reason="max_prompt_length_exceeded"),
                episode(2, {"steps": []}, {"name": "generator", "steps": []}, "no trajectory"),
            ]
        },
    )
    (dataset / "step_0" / "eval_3.json").write_text('{"id": "eval_3", "traj')
    events, job = read(dataset)
    assert len(spans(events)) == 4
    assert job.ledger.counts == {
        "broken or half-written JSON": 1,
        "episode file skipped": 1,
        "episode without a trajectory": 2,
        "trajectory without a name": 1,
        "trajectory without a step": 1,
    }


def result(step: int, accuracy: float, **more: object) -> dict[str, object]:
    return {
        "dataset": "dapo_math",
        "experiment_name": "voting-qwen3_1.7b-multi_lora-math",
        "checkpoint_step": step,
        "accuracy": accuracy,
        "eval_mode": "trained_checkpoint",
        "length_mode": "training",
        **more,
    }


def test_validation_comes_from_the_results_file(tmp_path: Path) -> None:
    dataset = paper_dump(tmp_path, {0: [voting(0)], 10: [voting(0)]})
    rows = [
        result(0, 0.2),
        result(10, 0.5),
        result(10, 0.6, length_mode="eval"),
        result(20, 0.4),
        result(30, 0.9, eval_mode="single_agent_transfer"),
        result(10, 0.1, experiment_name="another"),
    ]
    write_lines(dataset.parent / "eval_results.jsonl", rows)
    events, job = read(dataset)
    found = {one.step: one.totals["val_accuracy"] for one in series(events)}
    assert found == {0: 0.2, 10: 0.5, 20: 0.4}
    assert job.ledger.counts == {"result of a transfer evaluation": 1}


def test_a_results_file_alone(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "eval_results.jsonl", [result(0, 0.2), result(10, 0.5)])
    done, run = imported(file, tmp_path / "run")
    assert [record.totals["val_accuracy"] for record in run.steps()] == [0.2, 0.5]
    assert done.workflow.role_names == ("generator", "aggregator")
    write_lines(file, [result(0, 0.2), result(0, 0.3, dataset="x")])
    with pytest.raises(StoreError, match="2 experiments and data sets"):
        imported(file, tmp_path / "run2")


def test_two_dumps_in_one_folder_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        folder = tmp_path / name / "step_0"
        folder.mkdir(parents=True)
        (folder / "eval_0.json").write_text(json.dumps(voting(0)))
    with pytest.raises(StoreError, match="2 dumps"):
        imported(tmp_path, tmp_path / "run")
