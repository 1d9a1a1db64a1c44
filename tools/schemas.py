"""JSON schemas of stored records, of ``report.json`` and of the output of ``--json``.

They are made from the types themselves. ``python -m tools.schemas`` writes them to `docs/schemas`,
and a test compares.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from roledrift.cli.compare import Difference
from roledrift.cli.console import Failure
from roledrift.cli.findings import CheckedFinding
from roledrift.cli.ls import Row
from roledrift.cli.settings import Item
from roledrift.codec import RECORD_KINDS
from roledrift.costs import Costs
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.records import SCHEMA
from roledrift.report.model import REPORT_SCHEMA, Report
from roledrift.workflow import Workflow

FOLDER = Path(__file__).parents[1] / "docs" / "schemas"

Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SIMPLE: Mapping[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]},
    type(None): {"type": "null"},
    Any: {},
}


class CheckedRun(TypedDict):
    """One path that ``check`` looked at."""

    path: str
    run: str
    steps: int
    outcome: str
    code: int
    sentence: str
    incidents: tuple[Incident, ...]
    findings: tuple[CheckedFinding, ...]
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
    "ls": {"runs": tuple[Row, ...]},
    "report": {"runs": int, "files": tuple[str, ...]},
    "view": {"address": str},
    "watch": {"runs": tuple[WatchedRun, ...], "problems": tuple[str, ...]},
}
"""Verb to the fields of its document beside ``schema``."""

_VERSIONS = {"check": 2, "compare": 2, "import": 2, "ls": 2, "watch": 2}
"""Of documents whose first version is gone."""


class Shapes:
    """Schemas of types, and of the classes that they are made of.

    Args:
        nulls: Whether a value that is None is written as null, or left out.
    """

    def __init__(self, *, nulls: bool = True) -> None:
        self.nulls = nulls
        self.known: dict[str, Schema] = {}

    def of(self, hint: Any) -> Schema:
        """Schema of a simple type, a dataclass, a ``TypedDict``, or something made of these.

        Raises:
            TypeError: If there is no schema for it.
        """
        if hint in _SIMPLE:
            return _SIMPLE[hint]
        if isinstance(hint, type) and (is_dataclass(hint) or is_typeddict(hint)):
            if hint.__name__ not in self.known:
                self.known[hint.__name__] = {}  # a card holds blocks, and a block may be a card
                self.known[hint.__name__] |= self.fields(hint)
            return {"$ref": f"#/$defs/{hint.__name__}"}
        origin, args = get_origin(hint), get_args(hint)
        if origin is Literal:
            return {"enum": list(args)}
        if origin in (Union, types.UnionType):
            if not self.nulls and type(None) in args:
                (args,) = ([argument for argument in args if argument is not type(None)],)
            return (
                self.of(args[0])
                if len(args) == 1
                else {"anyOf": [self.of(argument) for argument in args]}
            )
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if origin is tuple and args[-1] is Ellipsis:
            return {"type": "array", "items": self.of(args[0])}
        if origin is tuple:
            parts = [self.of(argument) for argument in args]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}
        raise TypeError(f"no JSON schema for a field of type {hint!r}: add it to tools/schemas.py")

    def fields(self, cls: type[Any], **constants: Schema) -> Schema:
        """Schema of a class's own fields, after others; unknown keys are allowed in records."""
        hints = get_type_hints(cls)
        if is_dataclass(cls):
            kind = getattr(cls, "kind", None)
            constants |= {"kind": {"const": kind}} if isinstance(kind, str) else {}
            hints = {field.name: hints[field.name] for field in fields(cls)}
            needed = [
                field.name
                for field in fields(cls)
                if field.default is MISSING and field.default_factory is MISSING
            ]
        else:
            needed = [*hints]
        properties = {name: self.of(hint) for name, hint in hints.items()}
        return {
            "type": "object",
            "properties": {**constants, **properties},
            "required": [*constants, *needed],
        }

    def record(self, kind: str) -> Schema:
        """Schema of one kind of record."""
        version = {"type": "integer", "maximum": SCHEMA}
        return self.fields(RECORD_KINDS[kind], v=version, kind={"const": kind})


def document(title: str, body: Schema, known: Mapping[str, Schema]) -> Schema:
    """A schema (draft 2020-12) that stands alone, with the definitions that it uses."""
    used = _used(body, known)
    definitions = {"$defs": {name: known[name] for name in sorted(used)}} if used else {}
    return {"$schema": _DRAFT, "title": f"roledrift {title}", **body, **definitions}


def record_schema(kind: str) -> Schema:
    """Schema of one kind of line."""
    shapes = Shapes(nulls=False)
    return document(f"{kind} record, schema {SCHEMA}", shapes.record(kind), shapes.known)


def report_schema() -> Schema:
    """Schema of ``report.json``."""
    shapes = Shapes()
    body = shapes.fields(Report, v={"const": REPORT_SCHEMA}, kind={"const": "report"})
    return document(f"report, schema {REPORT_SCHEMA}", body, shapes.known)


def verb_schema(verb: str) -> Schema:
    """Schema of what a verb prints: its document or, if it failed, ``error`` alone."""
    records, shapes = Shapes(nulls=False), Shapes()
    for cls in (Verdict, Alert, Incident):
        shapes.known[cls.__name__] = records.record(cls.__name__.lower())
    version = _VERSIONS.get(verb, 1)
    failure = shapes.of(Failure)
    parts = {name: shapes.of(hint) for name, hint in DOCUMENTS[verb].items()}
    done: Schema = {
        "type": "object",
        "properties": {"schema": {"const": f"roledrift.{verb}/{version}"}, **parts},
        "required": ["schema", *parts],
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
    known = records.known | shapes.known
    return document(f"{verb} --json, schema {version}", {"anyOf": [done, failed]}, known)


def _used(part: Any, known: Mapping[str, Schema], seen: frozenset[str] = frozenset()) -> set[str]:
    """Names of the definitions that a schema refers to, directly or through others."""
    if isinstance(part, list):
        return set[str]().union(*(_used(name, known, seen) for name in part))
    if not isinstance(part, dict):
        return set()
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    new = {name} - seen - {""}
    deeper = [*part.values(), *(known[name] for name in new)]
    return new.union(*(_used(name, known, seen | new) for name in deeper))


def every() -> Iterator[tuple[str, Schema]]:
    """All schemas, by file below `docs/schemas`."""
    for kind in RECORD_KINDS:
        yield f"{kind}.json", record_schema(kind)
    yield "report.json", report_schema()
    for verb in DOCUMENTS:
        yield f"command_line/{verb}.json", verb_schema(verb)


if __name__ == "__main__":
    for file, schema in every():
        (FOLDER / file).write_text(json.dumps(schema, indent=1) + "\n")
