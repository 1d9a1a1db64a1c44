"""The house rules that a machine can check."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("roledrift", "integrations", "reference_trainer", "examples", "benchmarks", "tools")
DATA = {  # written out in Python, because it is checked or made by Python
    "tests/reference_trainer/recorders/paper_inputs.py",
    "tests/reference_trainer/tasks/attacks.py",
}
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "out" not in path.relative_to(ROOT).parts
)
FORBIDDEN_NAMES = re.compile(r"(^|_)(utils?|common|helpers?|base|manager)(_|$)")
FENCES = {
    "roledrift/monitor/monitor.py",  # in flight
    "roledrift/detect/suite.py",  # one broken detector must not silence the others
    "roledrift/extensions.py",  # what others bring must not kill a run
    "roledrift/cli/main.py",  # a crash must exit 2: Python's own 1 would read as "findings"
}


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All of them, without a look at expressions: those are most of a tree."""
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef):
            yield below
        if isinstance(below, ast.stmt | ast.excepthandler | ast.match_case):
            yield from functions(below)


def broken_rules(path: Path) -> Iterator[str]:
    text, name = path.read_text(), path.relative_to(ROOT).as_posix()
    length = len(text.splitlines())
    if length > 400 and name not in DATA:
        yield f"{name}: a file holds at most 400 lines"
    if FORBIDDEN_NAMES.search(path.stem):
        yield f"{name}: name the file after the thing in it"
    for function in functions(ast.parse(text)) if length > 60 else ():
        assert function.end_lineno is not None
        if function.end_lineno - function.lineno >= 60:
            yield f"{name}: {function.name} is longer than 60 lines"


def test_sizes_and_names() -> None:
    """Of the tests too."""
    files = [*SOURCES, *(ROOT / "tests").rglob("*.py")]
    assert [rule for path in files for rule in broken_rules(path)] == []


def test_binary_files_stay_small() -> None:
    """Recordings and pictures are in every clone for ever: 13.5 MB now, of which xz is 12.8."""
    binary = (".xz", ".png", ".parquet", ".gz", ".gif", ".jpg", ".mp4", ".pdf", ".safetensors")
    made = ("out", "runs", "node_modules")
    sizes = {
        path: path.stat().st_size
        for folder in (*FOLDERS, "docs", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in binary and not set(made) & set(path.relative_to(ROOT).parts)
    }
    assert max(sizes.values()) <= 150_000
    assert sum(sizes.values()) <= 14_000_000


def test_one_fence() -> None:
    """`except Exception` stands only where a failure is counted and named."""
    broad = re.compile(r"except\s*(\(?\s*(Base)?Exception\b|:)")
    found = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.is_relative_to(ROOT / "roledrift") and broad.search(path.read_text())
    }
    assert found <= FENCES


def test_the_tests_mirror_the_tree() -> None:
    missing = []
    for path in SOURCES:
        relative = path.relative_to(ROOT)
        if relative.parts[0] != "roledrift" or path.stem.startswith("__"):
            continue
        folder = ROOT / "tests" / Path(*relative.parts[1:-1])
        if not list(folder.glob(f"test_{path.stem}*.py")):
            missing.append(str(relative))
    assert missing == []
