"""Plain nested values into frozen dataclasses, with all problems collected."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def read(kind: type[T], values: Mapping[str, Any], *, path: str, problems: list[str]) -> T:
    """Build a ``kind`` from ``values``; fields that are not named keep their defaults.

    Args:
        kind: A dataclass whose fields all have defaults.
        values: Field names to plain values; nested mappings for nested dataclasses.
        path: Dotted name of this level, for messages.
        problems: Messages are appended here; the result is only valid if none was.
    """
    hints = get_type_hints(kind)
    known: dict[str, Any] = {}
    names = [entry.name for entry in fields(kind)]  # type: ignore[arg-type]  # T is a dataclass
    for key, value in values.items():
        where = f"{path}.{key}" if path else key
        if key not in names:
            near = get_close_matches(key, names, n=1)
            hint = f", did you mean {near[0]!r}?" if near else f", known are {names}"
            problems.append(f"unknown key {where!r}{hint}")
        else:
            known[key] = _value(hints[key], value, where, problems)
    return kind(**{key: value for key, value in known.items() if value is not MISSING})


def _value(hint: Any, value: Any, where: str, problems: list[str]) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        if isinstance(value, Mapping):
            return read(hint, value, path=where, problems=problems)
        problems.append(f"{where} must be a table of settings, got {value!r}")
        return MISSING
    kinds = [part for part in get_args(hint) if is_dataclass(part) and isinstance(part, type)]
    if kinds and isinstance(value, Mapping):
        return _read_one_of(kinds, value, where, problems)
    if hint is float and type(value) is int:
        return float(value)
    if get_origin(hint) is tuple and isinstance(value, list):
        value = tuple(value)
    if _fits(hint, value):
        return value
    problems.append(f"{where} must be {_describe(hint)}, got {value!r}")
    return MISSING


def _read_one_of(
    kinds: list[type], value: Mapping[str, Any], where: str, problems: list[str]
) -> Any:
    """The dataclass whose default ``name`` is the value's; the first one without a name."""
    if len(kinds) == 1:
        return read(kinds[0], value, path=where, problems=problems)
    by_name = {
        entry.default: kind for kind in kinds for entry in fields(kind) if entry.name == "name"
    }
    name = value.get("name", next(iter(by_name)))
    if name in by_name:
        return read(by_name[name], value, path=where, problems=problems)
    known = ", ".join(map(repr, by_name))
    problems.append(f"{where}.name must be one of {known}, got {name!r}")
    return MISSING


def _fits(hint: Any, value: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return value in parts
    if origin in (Union, types.UnionType):
        return any(_fits(part, value) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(parts[0], item) for item in value)
    if origin is not None:
        return isinstance(value, origin) and all(_fits(parts[1], item) for item in value.values())
    if hint is float and type(value) is int:
        return True
    if hint is bool or isinstance(value, bool):
        return hint is bool and isinstance(value, bool)
    return isinstance(value, hint)


def _describe(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(repr(value) for value in get_args(hint))
    return hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else str(hint)


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``over`` laid over it, table by table."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merge(below, value) if both else value  # type: ignore[arg-type]
    return result
