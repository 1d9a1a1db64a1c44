"""JSON schema of ``report.json``, made from the dataclasses so that the two cannot disagree."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

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
        properties = {one.name: shape(hints[one.name], known) for one in fields(cls)}
        kind = getattr(cls, "kind", None)
        if isinstance(kind, str):
            properties = {"kind": {"const": kind}, **properties}
        needed = [one.name for one in fields(cls) if one.default is MISSING]
        known[name] |= {
            "type": "object",
            "properties": properties,
            "required": ["kind", *needed] if isinstance(kind, str) else needed,
        }
    return {"$ref": f"#/$defs/{name}"}


def shape(hint: Any, known: dict[str, Any]) -> dict[str, Any]:
    """JSON schema of a type.

    Args:
        hint: A simple type, a dataclass, a ``TypedDict``, or something made of these.
        known: Schemas of classes by name; those that are met are added.

    Raises:
        TypeError: If there is no schema for it.
    """
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if isinstance(hint, type) and hint.__name__ in known:
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint, known)
    if is_typeddict(hint):
        its = {name: shape(part, known) for name, part in get_type_hints(hint).items()}
        known[hint.__name__] = {"type": "object", "properties": its, "required": [*its]}
        return {"$ref": f"#/$defs/{hint.__name__}"}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [shape(arg, known) for arg in args]}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": shape(args[1], known)}
    if origin is tuple and args[-1] is Ellipsis:
        return {"type": "array", "items": shape(args[0], known)}
    if origin is tuple:
        parts = [shape(arg, known) for arg in args]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "items": False}
    raise TypeError(f"no JSON schema for a field of type {hint!r}: add it to report/schema.py")
