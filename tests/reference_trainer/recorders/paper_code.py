r"""Records what the code of arXiv 2605.24202 does with some inputs, as facts to test against.

Run once, with a clone of github.com/XHMY/marl-llm-workflows (6eafb3c) and ``pylatexenc``, which its
grader imports::

    python -m tests.reference_trainer.recorders.paper_code CLONE

It writes ``tests/reference_trainer/paper_code.json``: our inputs and the results of its functions.
Nothing of its text is recorded: its prompt builders run on a prompt file of ours in its layout.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.reference_trainer.recorders.paper_inputs import (
    COMPLETIONS,
    CONVERSATIONS,
    MATH,
    PLANS,
    PROGRAMS,
    PROMPT_FILES,
    SELECTIONS,
    VERDICTS,
)

TARGET = Path(__file__).parents[1] / "paper_code.json"
PACKAGES = (
    *("rllm", "rllm.rewards", "rllm.rewards.code_utils", "rllm.rewards.math_utils"),
    *("rllm.parser", "rllm.workflows", "rllm.data", "examples", "examples.math_reasoning"),
    "examples.deepcoder",
)
STAND_INS = (
    *("rllm.agents.agent", "rllm.engine", "rllm.engine.rollout", "rllm.tools.tool_base"),
    *("rllm.tools.code_tools.code_tool", "rllm.tools.code_tools.together_tool"),
    *("rllm.rewards.reward_fn", "rllm.workflows.workflow", "rllm.workflows.code_test_loop_mixin"),
    *("rllm.rewards.code_utils.firejail_exec", "rllm.rewards.code_utils.humanevalplus"),
    *("rllm.rewards.code_utils.kodcode", "rllm.rewards.code_utils.taco", "rllm.parser.utils"),
    *("rllm.engine.rollout.rollout_engine", "rllm.workflows.timing_mixin"),
)


class _StandIn(ModuleType):
    """A module that has every name: what is imported and not called here."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _prepare(clone: Path) -> None:
    for name in STAND_INS:
        sys.modules[name] = _StandIn(name)
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = [str(clone / Path(*name.split(".")))]
        sys.modules[name] = package
    os.chdir(clone)


def _selections() -> list[dict[str, Any]]:
    module = importlib.import_module("examples.math_reasoning.voting_math_workflow")
    parser = module.VotingMathWorkflow.__new__(module.VotingMathWorkflow)
    candidates = ["1", "2", "3"]
    return [
        {"text": text, "chosen": int(parser.parse_aggregator_response(text, candidates))}
        for text in SELECTIONS
    ]


def _verdicts() -> list[dict[str, Any]]:
    module = importlib.import_module("examples.math_reasoning.evaluator_optimizer_math_workflow")
    module.EvaluationResult = lambda **fields: fields
    parser = module.EvaluatorOptimizerMathWorkflow.__new__(module.EvaluatorOptimizerMathWorkflow)
    return [
        {"text": text, "verdict": parser.parse_evaluation(text)["verdict"]} for text in VERDICTS
    ]


def _plans() -> list[dict[str, Any]]:
    module = importlib.import_module("examples.math_reasoning.orchestrator_workers_math_workflow")
    module.ProposalResult = lambda **fields: fields
    kind = module.OrchestratorWorkersMathWorkflow
    parser = kind.__new__(kind)
    parser.max_subtasks = 3
    return [
        {"text": text, "strategies": parser.parse_proposals(text)["strategies"]} for text in PLANS
    ]


def _math() -> list[dict[str, Any]]:
    types = importlib.import_module("rllm.rewards.reward_types")
    sys.modules["rllm.globals"] = ModuleType("rllm.globals")
    sys.modules["rllm.globals"].THOUGHT_DELIMITER_END = "</think>"  # type: ignore[attr-defined]
    module = importlib.import_module("rllm.rewards.math_reward")
    grader = module.RewardMathFn(types.RewardConfig())
    result = []
    for text, truth in MATH:
        with contextlib.redirect_stdout(io.StringIO()):
            grade = grader({"ground_truth": truth}, text)
        result.append({"text": text, "truth": truth, "reward": grade.reward})
    return result


def _programs() -> list[dict[str, Any]]:
    types = importlib.import_module("rllm.rewards.reward_types")
    module = importlib.import_module("rllm.rewards.code_reward")
    module.set_direct_execution(True)
    # Forks have them then: importing them on a busy machine takes longer than a test may.
    for name in ("numpy", "pandas"):
        importlib.import_module(name)
    grader = module.RewardCodeFn(types.RewardConfig())
    result = []
    for name, (text, tests) in PROGRAMS.items():
        task = {"ground_truth": json.dumps(tests), "data_source": "livecodebench"}
        grade = grader(task, text)
        result.append({"name": name, "text": text, "tests": tests, "reward": grade.reward})
        print(
            name,
            grade.reward,
            (grade.metadata.get("test_results") or [{}])[-1].get("error_message"),
        )
    return result


def _chat() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    tools = ModuleType("rllm.parser.tool_parser")

    class QwenToolParser:
        tool_call_begin, tool_call_end = "<tool_call>", "</tool_call>"

        def parse(self, text: str) -> list[Any]:
            return []

    tools.QwenToolParser = QwenToolParser  # type: ignore[attr-defined]
    sys.modules["rllm.parser.tool_parser"] = tools
    module = importlib.import_module("rllm.parser.chat_template_parser")

    class Tokenizer:
        bos_token, eos_token = None, "<|im_end|>"

        def apply_chat_template(self, messages: Any, **options: Any) -> str:
            return ""

        def decode(self, ids: str, skip_special_tokens: bool) -> str:
            return ids

    parser = module.QwenChatTemplateParser(Tokenizer(), disable_thinking=True)
    rendered = [
        {
            "messages": messages,
            "prompt": parser.parse(
                [{"role": role, "content": text} for role, text in messages],
                add_generation_prompt=True,
                is_first_msg=True,
            ),
        }
        for messages in CONVERSATIONS
    ]
    read = [
        {"completion": text, "content": parser.parse_completion(text)["content"]}
        for text in COMPLETIONS
    ]
    return rendered, read


class _Result:
    def __init__(self, number: int, strategy: str, text: str) -> None:
        self.subtask_id, self.subtask_description, self.response = number, strategy, text


BUILDERS = {
    ("math", "voting"): ("examples.math_reasoning.voting_math_workflow", "VotingMathWorkflow"),
    ("code", "voting"): ("examples.deepcoder.deepcoder_voting_workflow", "DeepcodeVotingWorkflow"),
    ("math", "eval_opt"): (
        "examples.math_reasoning.evaluator_optimizer_math_workflow",
        "EvaluatorOptimizerMathWorkflow",
    ),
    ("code", "eval_opt"): (
        "examples.deepcoder.deepcoder_evaluator_optimizer_workflow",
        "DeepcodeEvaluatorOptimizerWorkflow",
    ),
    ("math", "orch_workers"): (
        "examples.math_reasoning.orchestrator_workers_math_workflow",
        "OrchestratorWorkersMathWorkflow",
    ),
    ("code", "orch_workers"): (
        "examples.deepcoder.deepcoder_orchestrator_workers_workflow",
        "DeepcodeOrchestratorWorkersWorkflow",
    ),
    ("code", "single"): (
        "examples.deepcoder.single_agent_deepcoder_workflow",
        "SingleAgentDeepcodeWorkflow",
    ),
}


def _prompts(scratch: Path) -> list[dict[str, Any]]:
    result = []
    for (task, workflow), (where, name) in BUILDERS.items():
        file = scratch / f"{task}.json"
        file.write_text(json.dumps(PROMPT_FILES[task]), "utf-8")
        kind = getattr(importlib.import_module(where), name)
        builder = kind.__new__(kind)
        builder._prompts, builder._prompt_file = None, str(file)
        builder._current_test_feedback, builder.max_subtasks = None, 3
        problem = {"question": "What is {x} + 1?"}
        built: dict[str, str] = {}
        if workflow == "single":
            built["generator"] = builder._build_initial_prompt(problem["question"])
        elif workflow == "voting":
            built["generator"] = builder.build_generator_prompt(problem)
            built["aggregator"] = builder.build_aggregator_prompt(problem, ["one", "two {y}", "3"])
        elif workflow == "eval_opt":
            built["generator"] = builder.build_generator_prompt(problem)
            built["evaluator"] = builder.build_evaluator_prompt(problem, "text", 0, [])
            built["refinement"] = builder.build_refinement_prompt(problem, "text", None, 0, [])
        else:
            results = [_Result(0, "algebra", "one"), _Result(1, "guess {z}", "two")]
            built["orchestrator"] = builder.build_proposal_prompt(problem, 3)
            built["worker"] = builder.build_worker_prompt(problem, "algebra", 0, [])
            built["synthesizer"] = builder.build_synthesis_prompt(problem, None, results)
        result.append({"task": task, "workflow": workflow, "prompts": built})
    return result


def main(clone: Path, scratch: Path) -> None:
    """Record everything."""
    clone = clone.resolve()
    _prepare(clone)
    conversations, completions = _chat()
    facts = {
        "source": "github.com/XHMY/marl-llm-workflows 6eafb3c",
        "selections": _selections(),
        "verdicts": _verdicts(),
        "plans": _plans(),
        "math": _math(),
        "programs": _programs(),
        "conversations": conversations,
        "completions": completions,
        "prompt_files": PROMPT_FILES,
        "prompts": _prompts(scratch),
    }
    TARGET.write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print({name: len(values) for name, values in facts.items()})


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]), Path(folder))
