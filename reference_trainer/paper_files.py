"""Evaluations in the files of the paper's code (arXiv 2605.24202), so that its readers read ours.

``<folder>/<experiment>/<dataset>/step_<n>/<episode>.json`` holds one episode, one line of
``eval_results.jsonl`` one evaluated checkpoint. Keys and their order are those of that code. Where
it drops what we know (which candidate was chosen, which turn an output belongs to), a key
``reference_trainer`` carries it; readers of the original pass over unknown keys.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from reference_trainer.config import Config
from reference_trainer.episodes import Episode
from reference_trainer.policies import AdapterBank
from reference_trainer.regrading import Graded, pass_at_k
from reference_trainer.tasks import Problem
from roledrift import Workflow

_WORKFLOWS = {
    "eval_opt": "evaluator_optimizer",
    "orch_workers": "orchestrator_workers",
    "single": "single_agent",
}
_NUMBERED = ("voting", "math")
"""The one workflow and task whose slots have numbers in their names."""


@dataclass(frozen=True, slots=True)
class Played:
    """One evaluated episode.

    Attributes:
        problem: What was asked.
        episode: What was played.
        graded: Its spans, graded again, in order.
        prompts: Text of every span's prompt.
    """

    problem: Problem
    episode: Episode
    graded: tuple[Graded, ...]
    prompts: tuple[str, ...]


def experiment_name(config: Config, workflow: Workflow, *, parameters: int) -> str:
    """``voting-qwen3_0.00015b-multi_lora-math``; the size is the base model's, in billions."""
    policy = "multi_lora" if workflow.routing == "isolated" else "share_policy"
    name = _WORKFLOWS.get(workflow.name, workflow.name)
    return f"{name}-qwen3_{model_size(parameters)}-{policy}-{config.task.name}"


def base_parameters(bank: AdapterBank) -> int:
    """Weights of the base model, adapters not counted."""
    adapters = {id(one) for policy in bank.policies for one in bank.parameters_of(policy)}
    return sum(one.numel() for one in bank.model.parameters() if id(one) not in adapters)


def training_metadata(
    config: Config, workflow: Workflow, *, step: int, parameters: int
) -> dict[str, Any]:
    """Content of ``training_metadata.json`` beside the checkpoints."""
    return {
        "global_steps": step,
        "total_training_steps": config.train.steps,
        "experiment_name": experiment_name(config, workflow, parameters=parameters),
        "project_name": "reference_trainer",
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
    }


def model_size(parameters: int) -> str:
    """``"1.7b"`` style: billions with two significant digits."""
    # Decimal writes 0.000058 where a float would write 5.8e-05.
    return f"{Decimal(f'{parameters / 1e9:.2g}'):f}b"


def write_episodes(
    folder: Path, played: Sequence[Played], *, workflow: Workflow, task: str
) -> None:
    """One JSON file per episode, ``eval_<problem>[_run_<copy>].json``."""
    folder.mkdir(parents=True, exist_ok=True)
    several = any(one.episode.copy for one in played)
    for one in played:
        run = f"_run_{one.episode.copy}" if several else ""
        name = f"eval_{one.episode.problem}{run}"
        row = episode_row(one, name=name, workflow=workflow, task=task)
        (folder / f"{name}.json").write_text(json.dumps(row, indent=2) + "\n", "utf-8")


def episode_row(one: Played, *, name: str, workflow: Workflow, task: str) -> dict[str, Any]:
    """One episode as the paper's evaluation dumps it."""
    slots = [_slot_name(graded, workflow.name, task) for graded in one.graded]
    return {
        "id": name,
        "task": {
            "question": one.problem.question.strip(),
            "final_answer": one.problem.answer,
            "ground_truth": one.problem.answer,
            "data_source": task,
        },
        "termination_reason": None,
        "is_correct": one.episode.correct,
        "trajectories": [
            _trajectory(graded, prompt, slot, key=f"{name}/{number}", task=task)
            for number, (graded, prompt, slot) in enumerate(
                zip(one.graded, one.prompts, slots, strict=True)
            )
        ],
        "metrics": _metrics(one, workflow),
        "info": {},
    }


def result_row(
    config: Config,
    workflow: Workflow,
    played: Sequence[Played],
    *,
    step: int,
    parameters: int,
    seconds: float,
) -> dict[str, Any]:
    """One line of ``eval_results.jsonl``."""
    right: dict[int, list[bool]] = {}
    for one in played:
        right.setdefault(one.episode.problem, []).append(one.episode.correct)
    runs = len(next(iter(right.values())))
    means = [fmean(own[run] for own in right.values()) for run in range(runs)]
    counts = [sum(own) for own in right.values()]
    size = model_size(parameters)
    row: dict[str, Any] = {
        "timestamp": datetime.now().isoformat(),
        "hostname": socket.gethostname(),
        "dataset": config.task.name,
        "experiment_name": experiment_name(config, workflow, parameters=parameters),
        "checkpoint_step": step,
        "workflow_type": _WORKFLOWS.get(workflow.name, workflow.name),
        "model_size": size,
        "model_name": f"qwen3_{size}",
        "share_policy": workflow.routing != "isolated",
        "accuracy": round(fmean(means), 4),
        "num_correct": round(fmean(means) * len(right)),
        "num_total": len(right),
        "eval_duration_seconds": round(seconds, 1),
        "eval_mode": "trained_checkpoint" if step else "base_model",
        "length_mode": "training",
        "max_prompt_length": max(
            (len(span.prompt_ids) for one in played for span in one.episode.spans), default=0
        ),
        "max_response_length": config.rollout.max_new_tokens,
        "n_rollouts": runs,
        "mean_accuracy": round(fmean(means), 4),
        "std_accuracy": round(pstdev(means), 4),
        "pass_at_n": round(fmean(count > 0 for count in counts), 4),
    }
    if runs > 1:
        ks = [k for k in (1, 2, 4, 8, 16, 32, 64) if k <= runs]
        row["per_problem_n_correct"] = counts
        row["pass_at_k"] = {
            str(k): round(fmean(pass_at_k(count, runs, k) for count in counts), 4) for k in ks
        }
    return row


def append_result(file: Path, row: Mapping[str, Any]) -> None:
    """Add ``row``; a line for the same checkpoint, data set and number of rollouts goes."""
    key = ("experiment_name", "checkpoint_step", "dataset", "eval_mode", "n_rollouts")
    rows = (
        [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        if file.is_file()
        else []
    )
    kept = [one for one in rows if [one[name] for name in key] != [row[name] for name in key]]
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f".draft-{file.name}")
    draft.write_text("".join(json.dumps(one) + "\n" for one in [*kept, row]), "utf-8")
    draft.replace(file)


def _slot_name(graded: Graded, workflow: str, task: str) -> str:
    span = graded.span
    numbered = (workflow, task) == _NUMBERED and graded.duty == "solve"
    return f"{span.role}{span.slot}" if numbered else span.role


def _trajectory(graded: Graded, prompt: str, slot: str, *, key: str, task: str) -> dict[str, Any]:
    span = graded.span
    text = span.text.strip()
    output: dict[str, Any] = {
        "text": span.text,
        "content": text,
        "reasoning": "",
        "tool_calls": [],
        "multi_modal_inputs": None,
        "logprobs": [],
        "prompt_logprobs": [],
        "prompt_length": len(span.prompt_ids),
        "completion_length": len(span.output_ids),
        "finish_reason": span.finish_reason,
    }
    known = {
        "role": span.role,
        "slot": span.slot,
        "turn": span.turn,
        "policy": span.policy,
        "parse": asdict(span.parse),
        "correct": graded.correct,
    }
    step = {
        "chat_completions": [
            {"role": "user", "content": prompt.strip()},
            {"role": "assistant", "content": text, "reasoning": ""},
        ],
        "observation": None,
        "thought": "",
        "action": _action(graded, text, task),
        "model_response": "",
        "model_output": output,
        "info": {},
        "reward": span.reward,
        "done": False,
        "mc_return": 0.0,
    }
    return {
        # The same evaluation gives the same files.
        "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, key)),
        "name": slot,
        "task": None,
        "steps": [step],
        "reward": span.reward,
        "info": {"reference_trainer": known},
    }


def _action(graded: Graded, text: str, task: str) -> Any:
    value = graded.span.parse.value
    if graded.duty == "select":
        return text if graded.about is None else graded.about.text.strip()
    if graded.duty == "judge":
        verdict = (value or "").lower()
        known = verdict if verdict in ("correct", "incorrect") else "unknown"
        return {"verdict": known, "feedback": text}
    if graded.duty == "plan":
        return {
            "phase": "proposal",
            "strategies": [] if value is None else [value],
            "label": f"{task}_propose_solve",
            "execution_mode": "parallel",
        }
    return {"phase": "synthesis", "final_response": text} if graded.duty == "synthesize" else text


def _metrics(one: Played, workflow: Workflow) -> dict[str, Any]:
    def share(role: str) -> float:
        own = [graded.correct for graded in one.graded if graded.span.role == role]
        return fmean(bool(right) for right in own) if own else 0.0

    success = int(one.episode.correct)
    solved = [graded for graded in one.graded if graded.duty == "solve"]
    judged = [graded for graded in one.graded if graded.duty == "judge"]
    if workflow.name == "voting":
        return {
            "generator_acc": share("generator"),
            "aggregator_acc": share("aggregator"),
            "n_votes": len(solved),
            "any_correct": int(any(graded.correct for graded in solved)),
            "success": success,
            "generator_attempts": len(solved),
        }
    if workflow.name == "eval_opt":
        return {
            "generator_acc": share("generator"),
            "evaluator_acc": share("evaluator"),
            "total_iterations": len(judged),
            "success": success,
            "generator_attempts": len(solved),
            "evaluator_predictions": [graded.span.parse.value or "unknown" for graded in judged],
        }
    if workflow.name == "orch_workers":
        return {
            "n_strategies": len(solved),
            "n_workers": len(solved),
            "successful_workers": len(solved),
            "worker_success_rate": 1.0,
            "orchestrator_calls": 1,
            "worker_calls": len(solved),
            "synthesizer_calls": len(one.graded) - len(solved) - 1,
            "success": success,
            "total_trajectories": len(one.graded),
        }
    return {"generator_acc": share("generator"), "success": success}
