"""What users may rely on: changing this list is changing the public interface."""

import ast
import inspect
import re
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest

import roledrift

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
EXAMPLE = PAGE.parents[1] / "examples" / "extension" / "shouting.py"

PUBLIC = [
    "Alert", "Config", "Decision", "EVAL_OPT", "Monitor", "ORCH_WORKERS", "Role", "RoleBatch",
    "RoleDriftCallback", "RoleDriftError", "RoleGradientProbe", "RoleOrderedGradients", "Run",
    "Runs", "SINGLE", "Sample", "SpanTable", "StepRecord", "TextSampler", "TokenCapture", "VOTING",
    "Verdict", "Workflow", "build_report", "find_runs", "open_monitor", "open_run", "open_runs",
    "replay",
]  # fmt: skip

ANALYSIS = {
    "open_run": "(path)",
    "open_runs": "(folder)",
    "find_runs": "(path)",
    "replay": "(records, workflow, config, *, reference, yardsticks, host)",
    "build_report": "(paths, config, sharing, *, command, by, paper, costs)",
    "Run.path": "", "Run.header": "", "Run.name": "", "Run.workflow": "", "Run.state": "",
    "Run.problems": "", "Run.alerts": "", "Run.incidents": "", "Run.verdict": "",
    "Run.verdicts": "",
    "Run.costs": "(self, *, devices, gpu_hour_cost)",
    "Run.steps": "(self)",
    "Run.samples": "(self, limit)",
    "Run.frame": "(self)",
    "Run.texts": "(self, limit)",
    "Run.replay": "(self, config)",
    "Runs.folder": "", "Runs.names": "", "Runs.problems": "",
    "Runs.frame": "(self)",
    "Runs.texts": "(self, limit)",
    "Runs.count": "(self, value)", "Runs.index": "(self, value, start, stop)",
}  # fmt: skip
"""What notebooks and scripts use: names, and the arguments that they take."""

EXTENSIONS = {
    "roledrift.capture.ranks": ("TorchReducer",),
    "roledrift.config": ("Config", "from_mapping", "recorded"),
    "roledrift.detect.cards": ("Card", "Context", "Finding"),
    "roledrift.detect.evidence.streams": ("Stream",),
    "roledrift.errors": (
        "RoleDriftError", "AttachError", "CaptureError", "ConfigError", "SchemaError", "StoreError",
    ),
    "roledrift.ingest.form": ("Format", "Job"),
    "roledrift.ingest.rows": ("SpanRow", "StepDone"),
    "roledrift.judgement": ("Alert", "Decision", "Incident", "Verdict"),
    "roledrift.measure.cards": ("ProbeCard", "Statistic"),
    "roledrift.protocols": ("Detector", "Notifier", "Probe", "Reducer", "Sink"),
    "roledrift.records": ("GramRecord", "RunHeader", "Sample", "Stat", "StepRecord"),
    "roledrift.spans": ("SpanTable",),
    "roledrift.report.sweep.overviews": ("Overview",),
    "roledrift.sums": ("EVERYONE", "Distinct", "Gram", "Key", "Mean", "Moments", "Profile", "Sums"),
    "roledrift.workflow": ("Role", "Workflow"),
}  # fmt: skip
"""What statistics, detectors, formats and sinks of other distributions import."""


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


def _members(owner: type[object], made: object) -> dict[str, str]:
    names = {name for name in (*dir(owner), *vars(made)) if not name.startswith("_")}
    return {f"{owner.__name__}.{name}": _arguments(getattr(owner, name, None)) for name in names}


def _arguments(member: object) -> str:
    if not inspect.isfunction(member):
        return ""
    bare = [
        one.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
        for one in inspect.signature(member).parameters.values()
    ]
    return str(inspect.Signature(bare))


def test_what_notebooks_and_scripts_use_is_frozen() -> None:
    folder = Path(str(files("roledrift.report"))) / "demo_run"
    runs = roledrift.open_runs(folder)
    found = _members(roledrift.Run, runs[0]) | _members(roledrift.Runs, runs)
    functions = [name for name in ANALYSIS if "." not in name]
    found |= {name: _arguments(getattr(roledrift, name)) for name in functions}
    assert found == ANALYSIS


@pytest.mark.parametrize("module", EXTENSIONS)
def test_what_extensions_import_is_there(module: str) -> None:
    missing = [name for name in EXTENSIONS[module] if not hasattr(import_module(module), name)]
    assert missing == []


def test_the_example_of_an_extension_imports_nothing_else() -> None:
    for node in ast.walk(ast.parse(EXAMPLE.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roledrift"):
            assert {one.name for one in node.names} <= set(EXTENSIONS[node.module or ""])


def test_the_page_documents_every_name() -> None:
    page = PAGE.read_text()
    told = set(re.findall(r"`([A-Za-z_][\w.]*)", page))
    told |= {name.rpartition(".")[2] for name in told}
    inherited = {"Runs.count", "Runs.index"}
    assert {name for name in PUBLIC if name not in told} == set()
    assert {name for name in ANALYSIS if name.rpartition(".")[2] not in told} - inherited == set()
    for module, names in EXTENSIONS.items():
        assert {name for name in (module, *names) if name not in told} == set()


def test_the_page_documents_every_column() -> None:
    from roledrift.analysis.frames import COLUMNS, TEXT_COLUMNS

    page = PAGE.read_text()
    assert {name for name in (*COLUMNS, *TEXT_COLUMNS) if f"`{name}`" not in page} == set()
