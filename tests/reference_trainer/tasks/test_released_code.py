from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from reference_trainer.tasks.data import CodeRow, Splits, code_row
from reference_trainer.tasks.datasets import DeepCoderTask
from reference_trainer.tasks.released_code import (
    passes_released,
    released_block,
    same_released_output,
)
from reference_trainer.tasks.released_script import as_function
from reference_trainer.tasks.sandbox import Limits, Sandbox
from reference_trainer.tasks.sandbox_settings import SandboxSettings, open_sandbox
from reference_trainer.tasks.unit_tests import UnitTest
from tests.reference_trainer.recorded import FACTS

ON_PURPOSE = {
    "empty for gcd": 0.0,  # no reward for what the grader itself imports
    "memory between calls": 1.0,  # every test has a process of its own
}
"""Programs whose reward is another one here, each a row of docs/paper_compat.md."""

OF_TIME = ("too slow", "four seconds", "function too slow")
UNDER_LOAD = "two seconds"


@pytest.fixture(scope="module")
def box() -> Sandbox:
    return open_sandbox(SandboxSettings(workers=2, library=("site-packages",)))


def _unit_test(test: dict[str, Any]) -> UnitTest:
    row = {"question": "Q", "ground_truth": [test], "row_number": 0}
    return code_row(row).tests[0]


def _reward(fact: dict[str, Any], box: Sandbox, seconds: float) -> float:
    program = released_block(fact["text"])
    if program is None:
        return 0.0
    limits = Limits(seconds=seconds, memory=4 << 30)
    tests = [_unit_test(test) for test in fact["tests"]]
    return float(passes_released(program, tests, limits=limits, sandbox=box))


@pytest.mark.slow
def test_rewards_are_those_of_the_papers_code(box: Sandbox) -> None:
    facts = [fact for fact in FACTS["programs"] if fact["name"] != UNDER_LOAD]
    seconds = [1.0 if fact["name"] in OF_TIME else 30.0 for fact in facts]
    with ThreadPoolExecutor(2) as pool:
        rewards = list(pool.map(_reward, facts, [box] * len(facts), seconds))
    other = {
        fact["name"]: reward
        for fact, reward in zip(facts, rewards, strict=True)
        if reward != fact["reward"]
    }
    assert len(facts) > 90
    assert other == ON_PURPOSE


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("1 2\n", "1.0 2.00", True),
        (" a \nb\n\n", "a\nb", True),
        ("a 1.0", "a 1", False),  # not all of the line are numbers
        ("1\n\n2", "1\n2", False),
        ("1" * 5000, "1" * 4999 + "0", False),
        ("NaN", "nan", False),
        ("", "", True),
    ],
)
def test_outputs(got: str, expected: str, same: bool) -> None:
    assert same_released_output(got, expected) is same


def test_a_script_becomes_a_function() -> None:
    text = "import os\nx = 1\nif __name__ == '__main__':\n    print(x)\nelse:\n    print(2)\n"
    assert as_function(text).split("\n") == [
        *("import os", "def wrapped_function():", "    x = 1", "    print(x)", "")
    ]
    assert as_function("print(1") == "print(1"


def test_questions_say_what_the_papers_code_says() -> None:
    streams = (UnitTest("stdin_stdout", "1", "1"),)
    rows = (
        CodeRow("a", "Echo.\n", "", streams),
        CodeRow("b", "Add.", "def add(a):", streams),
        CodeRow("c", "Q ### Format: theirs\n\n", "def add(a):", streams, prepared=True),
    )
    task = DeepCoderTask(Splits(rows, (), {}), released=True)
    echo, add, prepared = (task.problem("train", number).question for number in range(3))
    for text in (
        "Echo.\n### Format: Read",
        "stdin",
        "STDOUT",
        "```python\n# YOUR CODE HERE\n```\n",
    ):
        assert text in echo
    assert echo.endswith("### Answer: (in the format above, with the backticks)\n\n")
    assert "```python\ndef add(a):\n```\n\n### Answer:" in add
    assert "stdin" not in add
    assert prepared == rows[2].question
