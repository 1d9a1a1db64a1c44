"""JSON schemas of the stored records, made from the dataclasses so that the two cannot disagree."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from roledrift.codec import RECORD_KINDS
from roledrift.records import SCHEMA

_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: _NUMBER,
    Any: {},
}


def json_schema(kind: str) -> dict[str, Any]:
    """JSON schema (draft 2020-12) of one kind of line.

    Args:
        kind: ``run``, ``step``, ``alert``, ``sample`` or ``verdict``.

    Raises:
        KeyError: For any other word.
    """
    body = _object(RECORD_KINDS[kind])
    body["properties"] = {
        "v": {"type": "integer", "maximum": SCHEMA},
        "kind": {"const": kind},
        **body["properties"],
    }
    body["required"] = ["v", "kind", *body["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"roledrift {kind} record, schema {SCHEMA}",
        **body,
    }


def _object(cls: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    properties = {one.name: _type(hints[one.name]) for one in fields(cls)}
    required = [
        one.name for one in fields(cls) if one.default is MISSING and one.default_factory is MISSING
    ]
    # Unknown keys are allowed: a reader of schema 1 keeps working on what later writers add.
    return {"type": "object", "properties": properties, "required": required}


def _type(hint: Any) -> dict[str, Any]:
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return _type(next(arg for arg in args if arg is not type(None)))
    if origin is tuple:
        return {"type": "array", "items": _type(args[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _type(args[1])}
    raise TypeError(f"no JSON schema for a field of type {hint!r}: add it to roledrift/schema.py")
