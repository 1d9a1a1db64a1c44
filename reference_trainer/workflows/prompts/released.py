"""Reads the prompt files of the released code of arXiv 2605.24202: its own words, from a clone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reference_trainer.errors import SettingsError

Forms = dict[str, dict[str, str]]

_SECTIONS = {
    "single": ("multi_agent_math_prompts", "deepcoder_single_agent_prompts"),
    "voting": ("voting_prompts", "deepcoder_voting_prompts"),
    "eval_opt": ("evaluator_optimizer_prompts", "deepcoder_evaluator_optimizer_prompts"),
    "orch_workers": ("orchestrator_workers_prompts", "deepcoder_orchestrator_workers_prompts"),
}
_PRIVATE = ("evaluator_optimizer_v2_prompts", "deepcoder_evaluator_optimizer_v2_prompts")
_FIELDS = {
    "{problem}": "{question}",
    "{solutions}": "{candidates}",
    "{solution}": "{text}",
    "{max_subtasks}": "3",
}
_CANDIDATE = "\n--- Solution {number} ---\n{text}\n"
_CANDIDATE_OF = "\n--- Solution {number} (Strategy: {strategy}) ---\n{text}\n"


def released_forms(file: Path, workflow: str) -> Forms:
    """The texts of ``workflow`` in a file of that layout, by role and form.

    Raises:
        SettingsError: If the file cannot be read, or lacks a template.
    """
    try:
        sections = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"prompts: {file} cannot be read as a prompt file: {error}. Give the path of "
            "examples/math_reasoning/prompt.json or examples/deepcoder/prompt.json in a clone of "
            "github.com/XHMY/marl-llm-workflows, or the name of a family"
        ) from error
    place = next((i for i in (0, 1) if _has(sections, _SECTIONS[workflow][i])), 0)
    section = _SECTIONS[workflow][place]

    def text(name: str, *, section: str = section) -> str:
        return _filled(_template(sections, section, name, file))

    def bare(name: str) -> str:
        """Sent as it stands, doubled braces included."""
        template = _template(sections, section, name, file)
        return template.replace("{", "{{").replace("}", "}}")

    if workflow == "single":
        return {"generator": {"prompt": text("generator_initial")}}
    if workflow == "voting":
        choose = {"prompt": text("aggregator"), "candidate": _CANDIDATE}
        return {"generator": {"prompt": text("generator")}, "aggregator": choose}
    if workflow == "orch_workers":
        compare = {"prompt": text("orchestrator_compare"), "candidate": _CANDIDATE_OF}
        return {
            "orchestrator": {"prompt": text("orchestrator_propose")},
            "worker": {"prompt": text("worker_full_solve")},
            "synthesizer": compare,
        }
    second = _PRIVATE[place]
    return {
        "generator": {
            "prompt": text("generator_initial"),
            "revise_shared": bare("generator_refinement"),
            "revise_private": text("generator_refinement", section=second),
        },
        "evaluator": {
            "shared": bare("evaluator_critique"),
            "private": text("evaluator_critique", section=second),
        },
    }


def _has(sections: Any, name: str) -> bool:
    return isinstance(sections, Mapping) and isinstance(sections.get(name), Mapping)


def _template(sections: Any, section: str, name: str, file: Path) -> str:
    text = sections[section].get(name) if _has(sections, section) else None
    template = text.get("template") if isinstance(text, Mapping) else None
    if not isinstance(template, str):
        raise SettingsError(
            f"prompts: {file} has no template {section}.{name}, which the released code's prompt "
            "files (version 1.4) have: give one of these, or the name of a family"
        )
    return template


def _filled(template: str) -> str:
    for theirs, ours in _FIELDS.items():
        template = template.replace(theirs, ours)
    return template
