"""Know that a role has begun to drift while the multi-agent RL run is still cheap to save.

Names are loaded when they are first used: ``import roledrift`` loads neither torch, pandas,
matplotlib nor transformers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roledrift_trl import RoleDriftCallback as RoleDriftCallback

    from roledrift.analysis.runs import Run as Run
    from roledrift.analysis.runs import Runs as Runs
    from roledrift.analysis.runs import open_run as open_run
    from roledrift.analysis.runs import open_runs as open_runs
    from roledrift.capture.batch import RoleBatch as RoleBatch
    from roledrift.capture.gradients import RoleGradientProbe as RoleGradientProbe
    from roledrift.capture.role_ordered import RoleOrderedGradients as RoleOrderedGradients
    from roledrift.capture.tokens import TokenCapture as TokenCapture
    from roledrift.config import Config as Config
    from roledrift.detect.suite import replay as replay
    from roledrift.errors import RoleDriftError as RoleDriftError
    from roledrift.judgement import Alert as Alert
    from roledrift.judgement import Decision as Decision
    from roledrift.judgement import Verdict as Verdict
    from roledrift.measure.sampling import TextSampler as TextSampler
    from roledrift.monitor.monitor import Monitor as Monitor
    from roledrift.monitor.open_monitor import open_monitor as open_monitor
    from roledrift.records import Sample as Sample
    from roledrift.records import StepRecord as StepRecord
    from roledrift.report.build import build_report as build_report
    from roledrift.spans import SpanTable as SpanTable
    from roledrift.store.reader import find_runs as find_runs
    from roledrift.workflow import EVAL_OPT as EVAL_OPT
    from roledrift.workflow import ORCH_WORKERS as ORCH_WORKERS
    from roledrift.workflow import SINGLE as SINGLE
    from roledrift.workflow import VOTING as VOTING
    from roledrift.workflow import Role as Role
    from roledrift.workflow import Workflow as Workflow

__version__ = "0.2.0"

_HOME = {
    "Alert": "roledrift.judgement",
    "Config": "roledrift.config",
    "Decision": "roledrift.judgement",
    "EVAL_OPT": "roledrift.workflow",
    "Monitor": "roledrift.monitor.monitor",
    "ORCH_WORKERS": "roledrift.workflow",
    "Role": "roledrift.workflow",
    "RoleBatch": "roledrift.capture.batch",
    "RoleDriftCallback": "roledrift_trl",
    "RoleGradientProbe": "roledrift.capture.gradients",
    "RoleOrderedGradients": "roledrift.capture.role_ordered",
    "RoleDriftError": "roledrift.errors",
    "Run": "roledrift.analysis.runs",
    "Runs": "roledrift.analysis.runs",
    "SINGLE": "roledrift.workflow",
    "Sample": "roledrift.records",
    "SpanTable": "roledrift.spans",
    "StepRecord": "roledrift.records",
    "TextSampler": "roledrift.measure.sampling",
    "TokenCapture": "roledrift.capture.tokens",
    "VOTING": "roledrift.workflow",
    "Verdict": "roledrift.judgement",
    "Workflow": "roledrift.workflow",
    "build_report": "roledrift.report.build",
    "find_runs": "roledrift.store.reader",
    "open_monitor": "roledrift.monitor.open_monitor",
    "open_run": "roledrift.analysis.runs",
    "open_runs": "roledrift.analysis.runs",
    "replay": "roledrift.detect.suite",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'roledrift' has no attribute {name!r}")
    # An ImportError stays an ImportError: it says which package is missing.
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
