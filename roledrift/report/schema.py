"""JSON schema of ``report.json``, made from the dataclasses so that the two cannot disagree."""

from __future__ import annotations

import types
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from roledrift.report.model import REPORT_SCHEMA, Report

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: _NUMBER,
    type(None): {"type": "null"},
}


def report_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of the whole file."""
    known: dict[str, Any] = {}
    _object(Report, known)
    top = known.pop("Report")
    top["properties"] = {
        "v": {"const": REPORT_SCHEMA},
        "kind": {"const": "report"},
        **top["properties"],
    }
    top["required"] = ["v", "kind", *top["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"roledrift report, schema {REPORT_SCHEMA}",
        **top,
        "$defs": {name: known[name] for name in sorted(known)},
    }


def _object(cls: type[Any], known: dict[str, Any]) -> dict[str, Any]:
    name = cls.__name__
    if name not in known:
        known[name] = {}  # a card holds blocks, and a block may be a card
        hints = get_type_hints(cls)
        properties = {one.name: _type(hints[one.name], known) for one in fields(cls)}
        kind = getattr(cls, "kind", None)
        if kind:
            properties = {"kind": {"const": kind}, **properties}
        needed = [one.name for one in fields(cls) if one.default is MISSING]
        known[name] |= {
            "type": "object",
            "properties": properties,
            "required": ["kind", *needed] if kind else needed,
        }
    return {"$ref": f"#/$defs/{name}"}


def _type(hint: Any, known: dict[str, Any]) -> dict[str, Any]:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, known)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(arg, known) for arg in args]}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": _type(args[0], known)}
    if origin is tuple:
        parts = [_type(arg, known) for arg in args]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}
    raise TypeError(f"no JSON schema for a field of type {hint!r}: add it to report/schema.py")
