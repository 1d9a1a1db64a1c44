"""Problems as rows of verl's Parquet files, and back.

A row is what verl's documentation asks for: ``prompt`` holds the question as one user message,
``reward_model.ground_truth`` what the grader compares with. Any Parquet file of mathematics
problems in this form can be trained on, whoever wrote it. Programs are graded by tests, which can
be megabytes and travel with every row of verl's batch: they are stored compressed.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reference_trainer.errors import SettingsError
from reference_trainer.tasks import Problem
from reference_trainer.tasks.unit_tests import UnitTest


def row_of(
    problem: Problem, index: int, *, source: str, split: str, tests: Sequence[UnitTest] = ()
) -> dict[str, Any]:
    """A row of verl's.

    Args:
        problem: Its question goes into the prompts.
        index: Its number within the split, which verl groups its traces by.
        source: Name of the data source; verl reports validation by it.
        split: ``train`` or ``validation``.
        tests: What programs are graded by; empty for a task that compares answers.

    Raises:
        ValueError: If the tests do not survive being written as JSON.
    """
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": problem.question}],
        "ability": "code" if tests else "math",
        "reward_model": {
            "style": "rule",
            "ground_truth": pack_tests(tests) if tests else problem.answer,
        },
        "extra_info": {"split": split, "index": index, "id": problem.id},
    }


def problem_of(row: Mapping[str, Any]) -> Problem:
    """The problem of a row, as verl hands it to an agent loop.

    Args:
        row: Columns of the Parquet file; ``raw_prompt`` is verl's name for the messages.

    Raises:
        SettingsError: If the row has no question or nothing to grade by.
    """
    messages = row.get("raw_prompt")
    if messages is None:
        messages = row.get("prompt")
    question = messages[-1]["content"] if messages is not None and len(messages) else ""
    model = row.get("reward_model")
    truth = model.get("ground_truth") if isinstance(model, Mapping) else None
    if not isinstance(question, str) or not question or truth in (None, ""):
        raise SettingsError(
            "a row needs a question in prompt[-1].content and an answer in "
            f"reward_model.ground_truth; this one has the columns {sorted(row)}. "
            "python -m verl_recipe.prepare writes such rows"
        )
    extra = row.get("extra_info") or {}
    return Problem(str(extra.get("id", extra.get("index", ""))), question, str(truth))


def pack_tests(tests: Sequence[UnitTest]) -> str:
    """Tests as compressed JSON.

    Raises:
        ValueError: If they do not come back as they were.
    """
    text = json.dumps([asdict(test) for test in tests])
    packed = base64.b64encode(zlib.compress(text.encode())).decode()
    if unpack_tests(packed) != tuple(tests):
        raise ValueError("the tests change when they are written as JSON")
    return packed


def unpack_tests(packed: str) -> tuple[UnitTest, ...]:
    """The tests of :func:`pack_tests`.

    Raises:
        SettingsError: If the text is something else.
    """
    try:
        tests = json.loads(zlib.decompress(base64.b64decode(packed, validate=True)))
        return tuple(UnitTest(**{**test, "arguments": tuple(test["arguments"])}) for test in tests)
    except (ValueError, TypeError, KeyError, zlib.error) as error:
        raise SettingsError(
            "reward_model.ground_truth holds no tests of programs "
            f"({type(error).__name__}: {error}): write the data with python -m verl_recipe.prepare"
        ) from error
