"""Names say what they hold, and a class has a name of its own."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "roledrift"
VAGUE = frozenset(
    {"found", "told", "there", "said", "its", "mine", "whole", "right", "fresh", "see", "one"}
)
"""Say what it is instead: a verdict, a path, a message. ``right`` may stand beside a ``left``."""

AT_MOST = {
    "cli": 11,
    "ingest": 23,
    "store": 43,
}
"""Rooms that still have some. Lower a number when you rename; a room that is not here has none."""

FILES = sorted(ROOT.rglob("*.py"))
BESIDE = sorted(
    path
    for name in ("reference_trainer", "tools", "examples")
    for path in (ROOT.parent / name).rglob("*.py")
)
TREES = {path: ast.parse(path.read_text()) for path in (*FILES, *BESIDE)}


def names(tree: ast.AST) -> Iterator[str]:
    """Variables, attributes, arguments, functions and classes that a file brings into being."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def room(path: Path) -> str:
    return path.relative_to(ROOT if path in FILES else ROOT.parent).parts[0]


@pytest.mark.parametrize("place", sorted({room(path) for path in TREES}))
def test_names_are_not_vague(place: str) -> None:
    used: Counter[str] = Counter()
    for path, tree in TREES.items():
        if room(path) == place:
            chosen = [*names(tree)]
            allowed = {"right"} if "left" in chosen else set()
            vague = [name for name in chosen if name.strip("_") in VAGUE - allowed]
            used.update(f"{path.relative_to(ROOT.parent)}: {name}" for name in vague)
    assert used.total() <= AT_MOST.get(place, 0), used


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(TREES[path]):
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
