"""Names say what they hold, and a class has a name of its own."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("roledrift", "integrations", "benchmarks", "reference_trainer", "tools", "examples")
VAGUE = frozenset(
    {"found", "told", "there", "said", "its", "mine", "whole", "right", "fresh", "see", "one"}
)
"""Say what it is instead: a verdict, a path, a message. ``right`` may stand beside a ``left``."""

TREES = {
    path.relative_to(ROOT): ast.parse(path.read_text())
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
}


def names(tree: ast.AST) -> Iterator[str]:
    """Variables, attributes, arguments, functions and classes that a file brings into being."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


@pytest.mark.parametrize("room", ROOMS)
def test_names_are_not_vague(room: str) -> None:
    used: Counter[str] = Counter()
    for path, tree in TREES.items():
        if path.parts[0] == room:
            chosen = [*names(tree)]
            allowed = {"right"} if "left" in chosen else set()
            vague = [name for name in chosen if name.strip("_") in VAGUE - allowed]
            used.update(f"{path}: {name}" for name in vague)
    assert not used


def test_a_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if path.parts[0] == "roledrift" and isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(str(path))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
