import json
from pathlib import Path
from typing import Any

import pytest

from reference_trainer.config import Config, load
from reference_trainer.episodes import Episode, Parse, Span
from reference_trainer.paper_files import (
    Played,
    append_result,
    episode_row,
    experiment_name,
    model_size,
    result_row,
    write_episodes,
)
from reference_trainer.regrading import regrade
from reference_trainer.tasks import Problem
from reference_trainer.tasks.math import MathTask
from roledrift import Workflow
from roledrift.workflow import EVAL_OPT, ORCH_WORKERS, VOTING

PROBLEM = Problem("validation-0", " 1 + 1", "2")
RIGHT, WRONG = " so \\boxed{ 2 }", " so \\boxed{ 3 }"
EPISODE_KEYS = "id task termination_reason is_correct trajectories metrics info"
TRAJECTORY_KEYS = "uid name task steps reward info"
STEP_KEYS = (
    "chat_completions observation thought action model_response model_output info reward done "
    "mc_return"
)
OUTPUT_KEYS = (
    "text content reasoning tool_calls multi_modal_inputs logprobs prompt_logprobs prompt_length "
    "completion_length finish_reason"
)
RESULT_KEYS = (
    "timestamp hostname dataset experiment_name checkpoint_step workflow_type model_size "
    "model_name share_policy accuracy num_correct num_total eval_duration_seconds eval_mode "
    "length_mode max_prompt_length max_response_length n_rollouts mean_accuracy std_accuracy "
    "pass_at_n"
)


def played(
    workflow: Workflow, *outputs: tuple[Any, ...], copy: int = 0, right: bool = True
) -> Played:
    spans = tuple(
        Span(
            problem=7,
            copy=copy,
            role=role,
            slot=slot,
            turn=turn,
            policy="shared",
            prompt_ids=(1, 2, 3),
            output_ids=(4, 0),
            logp_rollout=(-0.1, -0.2),
            finish_reason="stop",
            text=text,
            parse=Parse("tag", value),
            correct=None,
            reward=float(right),
        )
        for role, slot, turn, text, value in outputs
    )
    episode = Episode(7, copy, right, spans)
    graded = regrade(episode, PROBLEM, task=MathTask(), workflow=workflow)
    return Played(PROBLEM, episode, graded, tuple(f"ask {one.role}" for one in spans))


def voted(copy: int = 0, right: bool = True) -> Played:
    return played(
        VOTING,
        ("generator", 0, 0, WRONG, "3"),
        ("generator", 1, 0, RIGHT, "2"),
        ("generator", 2, 0, WRONG, "3"),
        ("aggregator", 0, 1, " \\boxed{ 2 }", "2"),
        copy=copy,
        right=right,
    )


def test_an_episode_file_has_the_papers_keys_in_order(tmp_path: Path) -> None:
    write_episodes(tmp_path, [voted()], workflow=VOTING, task="math")
    (file,) = tmp_path.iterdir()
    assert file.name == "eval_7.json"
    row = json.loads(file.read_text())
    assert list(row) == EPISODE_KEYS.split()
    assert [one["name"] for one in row["trajectories"]] == [
        "generator0",
        "generator1",
        "generator2",
        "aggregator",
    ]
    for trajectory in row["trajectories"]:
        assert list(trajectory) == TRAJECTORY_KEYS.split()
        (step,) = trajectory["steps"]
        assert list(step) == STEP_KEYS.split()
        assert list(step["model_output"]) == OUTPUT_KEYS.split()
        assert step["chat_completions"][-1]["content"] == step["model_output"]["content"]
        assert step["model_output"]["completion_length"] == 2
    # The action of a selecting role is what it chose; its own words are in the output.
    chosen = row["trajectories"][3]["steps"][0]
    assert chosen["action"] == RIGHT.strip()
    assert chosen["model_output"]["content"] == "\\boxed{ 2 }"
    assert row["metrics"] == {
        "generator_acc": pytest.approx(1 / 3),
        "aggregator_acc": 1.0,
        "n_votes": 3,
        "any_correct": 1,
        "success": 1,
        "generator_attempts": 3,
    }
    known = row["trajectories"][1]["info"]["reference_trainer"]
    assert (known["role"], known["slot"], known["correct"]) == ("generator", 1, True)


def test_actions_and_counts_of_the_other_workflows() -> None:
    judged = played(
        EVAL_OPT,
        ("generator", 0, 0, WRONG, "3"),
        ("evaluator", 0, 1, " no", "incorrect"),
        ("generator", 0, 2, RIGHT, "2"),
        ("evaluator", 0, 3, " hmm", None),
    )
    row = episode_row(judged, name="eval_7", workflow=EVAL_OPT, task="math")
    assert [one["name"] for one in row["trajectories"]] == ["generator", "evaluator"] * 2
    verdicts = [one["steps"][0]["action"] for one in row["trajectories"][1::2]]
    assert verdicts == [
        {"verdict": "incorrect", "feedback": "no"},
        {"verdict": "unknown", "feedback": "hmm"},
    ]
    assert row["metrics"]["total_iterations"] == 2
    assert row["metrics"]["evaluator_predictions"] == ["incorrect", "unknown"]

    planned = played(
        ORCH_WORKERS,
        ("orchestrator", 0, 0, " plan: left", "left"),
        ("worker", 0, 1, RIGHT, "2"),
        ("worker", 1, 1, WRONG, "3"),
        ("synthesizer", 0, 2, RIGHT, "2"),
    )
    row = episode_row(planned, name="eval_7", workflow=ORCH_WORKERS, task="math")
    names = [one["name"] for one in row["trajectories"]]
    assert names == ["orchestrator", "worker", "worker", "synthesizer"]
    assert row["trajectories"][0]["steps"][0]["action"]["strategies"] == ["left"]
    assert row["trajectories"][3]["steps"][0]["action"]["final_response"] == RIGHT.strip()
    assert row["metrics"]["worker_calls"] == 2
    assert row["metrics"]["total_trajectories"] == 4


def test_results_have_the_papers_keys_and_one_line_per_checkpoint(
    smoke: Config, tmp_path: Path
) -> None:
    file = tmp_path / "eval_results.jsonl"

    def row(step: int, *copies: bool) -> dict[str, Any]:
        runs = [voted(number, right) for number, right in enumerate(copies)]
        return result_row(smoke, VOTING, runs, step=step, parameters=58_384, seconds=1.26)

    append_result(file, row(0, True))
    append_result(file, row(2, False))
    append_result(file, row(2, True))
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["checkpoint_step"], one["accuracy"]) for one in rows] == [(0, 1.0), (2, 1.0)]
    assert [one["eval_mode"] for one in rows] == ["base_model", "trained_checkpoint"]
    assert list(rows[0]) == RESULT_KEYS.split()
    several = row(4, True, False, False, True)
    assert list(several) == [*RESULT_KEYS.split(), "per_problem_n_correct", "pass_at_k"]
    assert several["per_problem_n_correct"] == [2]
    assert several["pass_at_k"] == {"1": 0.5, "2": 0.8333, "4": 1.0}
    assert (several["mean_accuracy"], several["std_accuracy"]) == (0.5, 0.5)
    assert several["pass_at_n"] == 1.0


def test_names_are_those_of_the_launcher() -> None:
    shared, isolated = (load("tiny-smoke", {"routing": one}) for one in ("shared", "isolated"))
    assert experiment_name(shared, shared.routed(), parameters=1_720_574_976) == (
        "voting-qwen3_1.7b-share_policy-math"
    )
    assert experiment_name(isolated, isolated.routed(), parameters=58_384) == (
        "voting-qwen3_0.000058b-multi_lora-math"
    )
    assert [model_size(n) for n in (596_049_920, 4_022_468_096)] == ["0.6b", "4b"]
