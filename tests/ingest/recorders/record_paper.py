"""Dumps of the released code of arXiv 2605.24202, by its own workflows and writers.

That code is not on the package index: `PYTHONPATH=<a checkout>:<its examples> python
tests/ingest/recorders/record_paper.py` with what it imports. Its workflows run on an engine that
answers from a list instead of a model, with prompts of our own; grading, broadcasting, failing and
writing are its own: evaluation dumps, eval_results.jsonl, the training-time episode log and the
console.
"""

import asyncio
import contextlib
import random
from typing import Any

from dashboard.evaluate_checkpoints import (
    EvalResult,
    save_results_to_json,
    save_trajectory_to_json,
)
from examples.math_reasoning.evaluator_optimizer_math_workflow import (
    EvaluatorOptimizerMathWorkflow,
)
from examples.math_reasoning.orchestrator_workers_math_workflow import (
    OrchestratorWorkersMathWorkflow,
)
from examples.math_reasoning.voting_math_workflow import VotingMathWorkflow
from rllm.engine.rollout.rollout_engine import ModelOutput, RolloutEngine
from rllm.rewards.reward_fn import math_reward_fn
from rllm.utils.episode_logger import EpisodeLogger
from rllm.utils.tracking import Tracking
from rllm.workflows.workflow import TerminationEvent, TerminationReason
from written import fresh, written

NAME = "paper's code 6eafb3c"
DRAW = random.Random(0)
SAYS = {
    "generator": ("two and three make \\boxed{5}", "wait, so \\boxed{6}"),
    "worker": ("it is \\boxed{5}", "hmm \\boxed{6}"),
    "evaluator": ("\\boxed{Correct}", "a slip: \\boxed{Incorrect}"),
    "aggregator": ("\\boxed{1}", "the second, 2", "neither"),
    "synthesizer": ("\\boxed{5}", "\\boxed{6}"),
    "orchestrator": ("STRATEGY 1: add\nSTRATEGY 2: count", "STRATEGY 1: guess"),
}


class Engine(RolloutEngine):
    """Answers from the list; an aggregator's third prompt is too long."""

    def __init__(self) -> None:
        self.aggregated = 0

    async def get_model_response(self, messages: Any, agent_name: str = "", **_: Any) -> Any:
        role = agent_name.rstrip("0123456789")
        if role == "aggregator":
            self.aggregated += 1
            if self.aggregated == 3:
                raise TerminationEvent(TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED)
        text = DRAW.choice(SAYS[role])
        n = len(text.split())
        return ModelOutput(
            text=text, content=text, reasoning="", tool_calls=[], prompt_ids=[1] * 9,
            completion_ids=[2] * n, logprobs=[], prompt_logprobs=[], prompt_length=9,
            completion_length=n, finish_reason="length" if "hmm" in text else "stop",
        )  # fmt: skip


class Prompts(dict[str, Any]):
    """The same few words for every role: what the code's own prompts say is not ours to copy."""

    def get(self, key: str, default: Any = None) -> Any:
        words = {
            "aggregator": "{problem} candidates:{solutions}",
            "generator": "{problem}",
            "generator_initial": "{problem}",
            "evaluator_critique": "is it right?",
            "generator_refinement": "again",
            "orchestrator_propose": "plan: {problem}",
            "worker_full_solve": "{problem} by {strategy}",
            "orchestrator_compare": "{problem} choose:{solutions}",
        }
        return {"template": words[key]}

    __getitem__ = get


WORKFLOWS = {
    "voting-qwen3_1.7b-multi_lora-math": VotingMathWorkflow,
    "evaluator_optimizer-qwen3_0.6b-share_policy-math": EvaluatorOptimizerMathWorkflow,
    "orchestrator_workers-qwen3_4b-share_policy-math": OrchestratorWorkersMathWorkflow,
}


async def episodes(kind: Any, engine: Engine) -> list[Any]:
    found = []
    for number in range(4):
        task = {"question": f"2+3? ({number})", "final_answer": "5", "ground_truth": "5"}
        workflow = kind(
            rollout_engine=engine,
            executor=None,
            reward_function=math_reward_fn,
            prompts=Prompts(),
            use_final_outcome_reward=True,
        )
        found.append(
            await workflow.run_with_termination_handling(
                task | {"data_source": "m"}, f"eval_{number}"
            )
        )
    return found


def main() -> None:
    folder = fresh("paper")
    logger = EpisodeLogger(str(fresh("paper-training")))
    for name, kind in WORKFLOWS.items():
        engine = Engine()
        results = []
        for step in (0, 10):
            done = asyncio.run(episodes(kind, engine))
            for one in done:
                save_trajectory_to_json(one, str(folder), f"{name}/dapo_math/step_{step}")
            right = sum(bool(one.is_correct) for one in done)
            common = {
                "experiment_name": name, "checkpoint_step": step, "dataset": "dapo_math",
                "workflow_type": name.partition("-")[0], "model_size": name.split("_")[-2][:4],
                "model_name": "qwen3", "share_policy": "share" in name, "num_correct": right,
                "num_total": 4, "eval_duration_seconds": 1.0, "hostname": "host",
                "timestamp": "2026-05-20T00:00:00",
            }  # fmt: skip
            for mode, share in (("eval", 0.0), ("training", right / 4)):
                results.append(EvalResult(accuracy=share, length_mode=mode, **common))
            if "voting" in name:
                with contextlib.redirect_stdout(None):
                    logger.log_episodes_batch(done, step=step + 1, mode="train", epoch=0)
        with contextlib.redirect_stdout(None):
            save_results_to_json(results, str(folder / name / "eval_results.jsonl"))
    console()
    how = "its workflows on an engine that answers from a list, save_trajectory_to_json, EvalResult"
    written("paper", NAME, how)
    written("paper-training", NAME, "EpisodeLogger (trainer.log_episodes)")
    written("paper-wandb", NAME, "Tracking with the console, the lines that wandb keeps")


def console() -> None:
    """Two starts of a preempted run, in the folders that wandb makes; the keys of IP and of SP."""
    folder = fresh("paper-wandb")
    facts = {"critic/rewards/mean": 0.5, "actor/entropy": 0.4, "batch/success": 0.5}
    facts |= {"response_length/mean": 90.0, "response_length/clip_ratio": 0.1, "batch/n_votes": 3.0}
    facts |= {"batch/generator_acc": 0.6, "batch/aggregator_acc": 0.5, "batch/any_correct": 0.8}
    leaves = {"chi2_token": 0.1, "training_ppl": 1.2, "rollout_ppl": 1.1, "ppl_ratio": 1.09}
    leaves |= {"kl": 0.01, "k3_kl": 0.02, "log_ppl_diff": 0.03}
    own = {"grad_norm": 0.5, "pg_clipfrac": 0.01, "ppo_kl": 0.001, "pg_loss": -0.1, "lr": 2e-5}
    isolated = {
        f"actor/{role}/{leaf}": value
        for role in ("generator", "aggregator")
        for leaf, value in (leaves | own | {"actor": 0.3}).items()
    }
    shared = {f"rollout_corr/{leaf}": value for leaf, value in leaves.items()}
    shared |= {f"actor/{leaf}": value for leaf, value in own.items()} | {"perf/mfu/actor": 0.3}
    for name, mine in (("isolated", isolated), ("shared", shared)):
        for start, steps in (("20260501_090000", range(6)), ("20260502_090000", range(4, 9))):
            files = folder / name / "wandb" / f"run-{start}-abc" / "files"
            files.mkdir(parents=True)
            log = Tracking("p", name, ["console"])
            with (files / "output.log").open("w") as file, contextlib.redirect_stdout(file):
                print("noise of the start: step")
                for step in steps:
                    # What the second start repeats differs, so that it shows which one counts.
                    drift = step / 100 + (0.5 if start > "20260502" else 0.0)
                    row = {key: value + drift for key, value in (facts | mine).items()}
                    if step % 2 == 0:
                        row["val/unknown/pass@1"] = 0.3 + step / 100
                    log.log({**row, "training/global_step": step}, step=step)


if __name__ == "__main__":
    main()
