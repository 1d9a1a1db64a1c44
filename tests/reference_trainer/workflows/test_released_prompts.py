import json
from pathlib import Path
from typing import Any

import pytest

from reference_trainer.errors import SettingsError
from reference_trainer.workflows.prompts import Prompts, load_prompts
from tests.reference_trainer.recorded import FACTS

QUESTION = "What is {x} + 1?"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Prompt files in the layout of the paper's code, with texts of ours."""
    for task, sections in FACTS["prompt_files"].items():
        (tmp_path / f"{task}.json").write_text(json.dumps(sections), "utf-8")
    return {task: tmp_path / f"{task}.json" for task in FACTS["prompt_files"]}


def _candidates(prompts: Prompts, role: str, *rows: tuple[str, str]) -> str:
    return "".join(
        prompts.fill(role, "candidate", number=str(number), text=text, strategy=strategy)
        for number, (text, strategy) in enumerate(rows, start=1)
    )


def _built(prompts: Prompts, name: str) -> str:
    if name == "refinement":
        return prompts.fill("generator", "revise_shared")
    if name == "evaluator":
        return prompts.fill("evaluator", "shared")
    if name == "worker":
        return prompts.fill("worker", question=QUESTION, strategy="algebra")
    rows = {
        "aggregator": (("one", ""), ("two {y}", ""), ("3", "")),
        "synthesizer": (("one", "algebra"), ("two", "guess {z}")),
    }
    if name in rows:
        candidates = _candidates(prompts, name, *rows[name])
        return prompts.fill(name, question=QUESTION, candidates=candidates)
    return prompts.fill(name, question=QUESTION)


@pytest.mark.parametrize(
    "fact", FACTS["prompts"], ids=lambda fact: f"{fact['workflow']}-{fact['task']}"
)
def test_prompts_are_those_that_the_papers_code_builds(
    fact: dict[str, Any], files: dict[str, Path]
) -> None:
    prompts = load_prompts(str(files[fact["task"]]), workflow=fact["workflow"])
    assert {name: _built(prompts, name) for name in fact["prompts"]} == fact["prompts"]


def test_a_single_agent_and_the_private_history_have_texts_of_their_own(
    files: dict[str, Path],
) -> None:
    alone = load_prompts(str(files["math"]), workflow="single").fill("generator", question="Q")
    assert alone == "Alone: Q in \\boxed{}"
    prompts = load_prompts(str(files["math"]), workflow="eval_opt")
    assert prompts.fill("evaluator", "private", question="Q", text="T").startswith(
        "Check Q with\nT"
    )
    assert "told: F" in prompts.fill("generator", "revise_private", feedback="F")


@pytest.mark.parametrize("family", ["released-math", "released-code"])
def test_our_words_have_the_same_layout(family: str, files: dict[str, Path]) -> None:
    """Candidates are laid out as in the paper's code, and what it does not format stays doubled."""
    ours = load_prompts(family)
    theirs = {
        workflow: load_prompts(str(files["math"]), workflow=workflow)
        for workflow in ("voting", "orch_workers", "eval_opt")
    }
    for role, workflow in (("aggregator", "voting"), ("synthesizer", "orch_workers")):
        row = ("text", "strategy")
        assert _candidates(ours, role, row) == _candidates(theirs[workflow], role, row)
    doubled = "\\boxed{{}}" in ours.fill("generator", "revise_shared")
    assert doubled == (family == "released-math")
    assert not any(text.endswith((" ", "\n")) for text in ours.forms["generator"].values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read as a prompt file: .*No such file.*in a clone of github.com"),
        ("{", "cannot be read as a prompt file"),
        ("[]", r"has no template voting_prompts.aggregator.*version 1.4"),
        ('{"voting_prompts": {"generator": {"text": "Q"}}}', "has no template voting_prompts.agg"),
    ],
)
def test_files_that_are_not_prompt_files(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "prompt.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        load_prompts(str(file))
    assert str(file) in str(caught.value)
