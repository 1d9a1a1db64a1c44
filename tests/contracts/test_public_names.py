"""What users may rely on: changing this list is changing the public interface."""

import ast
from importlib import import_module
from pathlib import Path

import roledrift

PUBLIC = [
    "Alert", "Config", "Decision", "EVAL_OPT", "Monitor", "ORCH_WORKERS", "Role", "RoleBatch",
    "RoleDriftCallback", "RoleDriftError", "RoleGradientProbe", "RoleOrderedGradients", "Run",
    "SINGLE", "Sample", "SpanTable", "StepRecord", "TextSampler", "TokenCapture", "VOTING",
    "Verdict", "Workflow", "build_report", "find_runs", "open_monitor", "open_run", "replay",
]  # fmt: skip


def test_the_public_names() -> None:
    assert sorted(roledrift.__all__) == sorted(["__version__", *PUBLIC])


def test_every_public_name_is_there() -> None:
    for name in PUBLIC:
        assert getattr(roledrift, name) is not None


def test_static_tools_and_python_see_the_same_names() -> None:
    tree = ast.parse(Path(roledrift.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    static = {
        (alias.asname or alias.name): node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert static == roledrift._HOME
    for name, home in static.items():
        assert hasattr(import_module(home), name)
