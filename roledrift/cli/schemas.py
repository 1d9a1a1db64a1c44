"""JSON schemas of what every verb prints under ``--json``, made from the types it prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from roledrift.cli.compare import Difference
from roledrift.cli.console import Failure
from roledrift.cli.findings import Finding
from roledrift.cli.ls import Row
from roledrift.cli.settings import Item
from roledrift.costs import Costs
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.report.schema import shape
from roledrift.schema import json_schema
from roledrift.workflow import Workflow


class CheckedRun(TypedDict):
    """One path that ``check`` looked at."""

    path: str
    run: str
    steps: int
    outcome: str
    code: int
    sentence: str
    incidents: tuple[Incident, ...]
    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]
    alerts: tuple[Alert, ...]
    problems: tuple[str, ...]
    costs: Costs | None
    error: Failure | None


class WatchedRun(TypedDict):
    """One run that ``watch`` followed."""

    path: str
    state: str
    steps: int
    last_step: int | None
    outcome: str
    sentence: str
    incidents: tuple[Incident, ...]
    alerts: tuple[Alert, ...]


class ImportedRun(TypedDict):
    """One run that ``import`` made, or would make."""

    source: str
    out: str | None
    format: str
    reason: str
    workflow: Workflow
    steps: int
    first_step: int | None
    last_step: int | None
    spans: int
    columns: Mapping[str, int]
    odd: Mapping[str, int]
    notes: Mapping[str, str]


class Setting(TypedDict):
    """A setting in which two runs differ."""

    name: str
    a: str
    b: str


class ComparedIncident(TypedDict):
    """An incident of one of two runs."""

    run: str
    name: str
    incident: Incident


class Demonstrated(TypedDict):
    """A recorded run that comes with the package."""

    name: str
    happened: str
    expected: str
    state: str


DOCUMENTS: Mapping[str, Mapping[str, Any]] = {
    "check": {"code": int, "counts": Mapping[str, int], "runs": tuple[CheckedRun, ...]},
    "compare": {
        "a": str,
        "b": str,
        "settings": tuple[Setting, ...],
        "differences": tuple[Difference, ...],
        "left_out": dict[str, tuple[int, ...]],
        "files": tuple[str, ...],
        "outcomes": Mapping[str, str],
        "incidents": tuple[ComparedIncident, ...],
    },
    "demo": {
        "demos": tuple[Demonstrated, ...],
        "run": str | None,
        "state": str | None,
        "headline": str | None,
        "files": tuple[str, ...],
    },
    "doctor": {
        "machine": tuple[Item, ...],
        "settings": tuple[Item, ...],
        "run": tuple[Item, ...],
    },
    "import": {"runs": tuple[ImportedRun, ...], "failed": Mapping[str, str]},
    "ls": {"runs": tuple[Row, ...], "truncated": bool},
    "report": {"runs": int, "files": tuple[str, ...]},
    "view": {"address": str},
    "watch": {"runs": tuple[WatchedRun, ...], "problems": tuple[str, ...]},
}
"""Verb to the fields of its document beside ``schema``."""

_VERSIONS = {"check": 2, "compare": 2, "import": 2, "ls": 2, "watch": 2}
"""Of documents whose first version is gone."""


def document_schema(verb: str) -> dict[str, Any]:
    """JSON schema (draft 2020-12) of what a verb prints under ``--json``.

    It is the verb's document or, if it could not be done, an object with ``error`` alone.

    Raises:
        KeyError: For an unknown verb.
    """
    known: dict[str, Any] = {
        kind.__name__: _record(kind.__name__.lower()) for kind in (Verdict, Alert, Incident)
    }
    version = _VERSIONS.get(verb, 1)
    failure = shape(Failure, known)
    fields = {name: shape(hint, known) for name, hint in DOCUMENTS[verb].items()}
    done: dict[str, Any] = {
        "type": "object",
        "properties": {"schema": {"const": f"roledrift.{verb}/{version}"}, **fields},
        "required": ["schema", *fields],
    }
    if verb == "check":
        # What could not be read does not keep the other runs from being checked.
        done["properties"]["error"] = failure
    failed = {
        "type": "object",
        "properties": {"error": failure},
        "required": ["error"],
        "not": {"required": ["schema"]},
    }
    used = _used([done, failed], known)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"roledrift {verb} --json, schema {version}",
        "anyOf": [done, failed],
        "$defs": {name: known[name] for name in sorted(known) if name in used},
    }


def _used(part: Any, known: Mapping[str, Any]) -> set[str]:
    """Names of the schemas that a schema refers to."""
    if isinstance(part, list):
        return set[str]().union(*(_used(one, known) for one in part))
    if not isinstance(part, dict):
        return set()
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    deeper = [*part.values(), *([known[name]] if name else [])]
    return {name, *_used(deeper, known)} - {""}


def _record(kind: str) -> dict[str, Any]:
    body = json_schema(kind)
    return {name: part for name, part in body.items() if name not in ("$schema", "title")}
