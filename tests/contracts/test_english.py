"""What people read is plain English: phrases that readers stumbled over do not come back."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from roledrift.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "reference_trainer" / "README.md"]
PAGES += [ROOT / "examples" / "verl_recipe" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CODE = [*(ROOT / "roledrift").rglob("*.py"), *(ROOT / "integrations").rglob("*.py")]

PHRASES = {
    r"\b(answers?|responses|outputs) (are|is|were|have been) cut(?! off)\b": "responses truncated",
    r"\bby nobody\b|\bto nobody\b": "not + a verb",
    r"\bcr(y|ies) wolf\b": "false-alarm rate",
    r"\b(is|was|are|were) no (log|run|format|number|trainer|file|path|finding|directory)\b": (
        "is not a ..., or: unknown ..."
    ),
    r"\b(is|was|are|were) no (role|column|setting|JSON)\b": "is not a ..., or: unknown ...",
    r"\bat step \S+ already\b": "as early as step ...",
    r"\b(is|are|was|were) told (by|once|at|otherwise)\b": "is sent, shown, named, determined",
    r"\bcannot be told then\b": "cannot be determined then",
    r"\b(it|that|which|score|verdict|texts|incident) stands? (below|beside|in|right|under)\b": (
        "is shown, is listed, is in"
    ),
    r"\bof several only\b": "with several, only ...",
    r"\bthe whole lacks\b": "an optional column survives only if every part has it",
    r"\bnothing for reports alone\b": "no extra is needed to ...",
    r"\buntold\b": "pending",
    r"\bbefore anybody is told\b": "before anything is sent",
    r"\bgives the same verdict always\b": "has answered ... to everything",
    r"\bbecome sure of itself\b": "its entropy collapsed",
    r"\blikewise\b": "the same, also",
    r"\bas ever\b": "as before, as without ...",
    r"\bpairs of wrong siblings\b": "pairs of wrong sibling answers",
    r"\bfor who (would|writes|reads|wants)\b": "for those who, or: if you ...",
    r"\bSo does (silence|it|that)\b": "say who does what",
    r"\bbears? (no )?loss\b": "has a loss",
    r"\bgoes by it\b": "reads it",
    r"\bon the disk\b(?! (is|was|with|has))": "on disk",
    r"\bmoves? away from its own baseline\b": "changes from its baseline",
    r"\bis one, with the nearest\b": "unknown keys are errors",
    r"\b(must|has to|have to) be known before\b.*\bbelieved\b": "caveats",
}
"""What is written in a hurry or through another language -> what a reader expects."""


def prose(page: Path) -> str:
    return " ".join(re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M).split())


def strings(path: Path) -> Iterator[str]:
    """Texts in code that a person may read: constants that are not docstrings."""
    tree = ast.parse(path.read_text())
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield " ".join(node.value.split())


def helps() -> Iterator[str]:
    for verb in get_command(app).commands.values():  # type: ignore[attr-defined]
        yield " ".join((verb.help or "").split())
        yield from (getattr(option, "help", None) or "" for option in verb.params)


def found(text: str) -> list[str]:
    return [
        f"{match[0]!r} -> {better}"
        for phrase, better in PHRASES.items()
        for match in re.finditer(phrase, text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_read_well(page: Path) -> None:
    assert found(prose(page)) == []


def test_messages_and_help_read_well() -> None:
    assert found("\n".join(helps())) == []
    bad = {str(path.relative_to(ROOT)): found("\n".join(strings(path))) for path in CODE}
    assert {path: phrases for path, phrases in bad.items() if phrases} == {}


def test_the_check_finds_what_it_looks_for() -> None:
    for sentence in (
        "Since step 2 the answers are cut.",
        "'x' is no log, did you mean 'wandb'?",
        "It has become sure of itself and gained nothing.",
        "Each change is told once.",
    ):
        assert found(sentence), sentence
    assert found("Responses have been truncated since step 2.") == []


@pytest.mark.parametrize("page", PAGES[3:], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_begins_with_what_it_is_for(page: Path) -> None:
    """A sentence comes before the first table, list or block of code."""
    body = page.read_text().split("\n", 1)[1].lstrip("\n")
    assert re.match(r"[A-Za-z`*\[]", body), body[:60]
    assert not body.startswith(("```", "| ", "* ", "## ")), body[:60]
