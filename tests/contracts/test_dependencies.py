"""What is declared is what is imported, and the other way round."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SHIPPED = (
    "roledrift", "roledrift_importers", "roledrift_paper", "roledrift_trl", "roledrift_rllm",
    "roledrift_verl", "roledrift_vllm",
)  # fmt: skip
# Used if the user has them, never asked for.
IF_PRESENT = {"mlflow", "tensorboard", "tokenizers"}


@cache
def imported(folder: Path) -> set[str]:
    """Top-level packages that the files of a folder import, lazily or not."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - set(SHIPPED)


def distributions(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~ ]", line)[0].replace("-", "_") for line in requirements}


def test_every_required_distribution_is_imported_by_the_library() -> None:
    assert distributions(PROJECT["dependencies"]) <= imported(ROOT / "roledrift")


def test_every_import_is_declared() -> None:
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    declared = distributions([*PROJECT["dependencies"], *extras]) | IF_PRESENT
    asked = imported(ROOT / "roledrift") | imported(ROOT / "integrations")
    assert asked - declared == set()
    assert asked >= IF_PRESENT, "a name of the list that nothing imports any more"
