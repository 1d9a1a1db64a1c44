"""Convert records to JSON lines and back.

Strict JSON has no non-finite numbers, and here they are the signal: they travel as the strings
``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Unknown keys of a known schema are passed over and
never an error; a newer schema is refused.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from itertools import chain
from math import isfinite
from operator import attrgetter
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import orjson

from roledrift.errors import SchemaError
from roledrift.judgement import Alert, Incident, Verdict
from roledrift.records import SCHEMA, RunHeader, Sample, Stat, Stats, StepRecord, StoredStats

Record = StepRecord | Alert | Incident | RunHeader | Sample | Verdict

_NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
RECORD_KINDS: dict[str, type[Any]] = {
    "step": StepRecord,
    "alert": Alert,
    "incident": Incident,
    "run": RunHeader,
    "sample": Sample,
    "verdict": Verdict,
}
_NAMES = {cls: name for name, cls in RECORD_KINDS.items()}


def plain(record: Record) -> dict[str, Any]:
    """Convert ``record`` to JSON-ready values with ``v`` and ``kind``, without absent values."""
    clean: dict[str, Any] = {"v": SCHEMA, "kind": _NAMES[type(record)]}
    clean.update(_encode(record))
    return clean


def to_json(record: Record) -> str:
    """Encode ``record`` as one line of strict JSON."""
    body = plain(record)
    try:
        return orjson.dumps(body).decode()
    except TypeError:
        # It is stricter than json: a lone surrogate, a number beyond 64 bits, a numpy float.
        return json.dumps(body, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _encode(value: Any) -> Any:
    if type(value) is Stat:
        # A run has hundreds of thousands of them.
        return _encode_stat(value)
    if isinstance(value, float):
        if isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, str | int):
        return value
    if type(value) is StoredStats:
        if all(_logged(stat) for stat in value.body.values()):
            return value.body
        return {name: _encode_stat(stat) for name, stat in value.items()}
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        pairs = ((name, getattr(value, name)) for name in _field_names(type(value)))
        return {name: _encode(item) for name, item in pairs if item is not None}
    return value


def _encode_stat(stat: Stat) -> dict[str, Any]:
    n, mean = stat.n, stat.mean
    known = isfinite(n) and isfinite(mean)
    body = {"n": n, "mean": mean} if known else {"n": _encode(n), "mean": _encode(mean)}
    rest = _rest_of_stat(stat)
    if rest != _NOTHING:
        for name, item in zip(_REST, rest, strict=True):
            if item is not None:
                body[name] = _encode(item)
    return body


def _logged(body: Mapping[str, Any]) -> bool:
    """Whether stored numbers are those of a logged mean, and JSON as they are."""
    n, mean = body["n"], body["mean"]
    return len(body) == 2 and type(n) is int and type(mean) is float and isfinite(mean)


_REST = tuple(field.name for field in fields(Stat))[2:]
_NOTHING = (None,) * len(_REST)
_rest_of_stat = attrgetter(*_REST)
"""All that a logged mean has not."""

_FIELDS: dict[type[Any], tuple[str, ...]] = {}


def _field_names(cls: type[Any]) -> tuple[str, ...]:
    """Names of a dataclass's fields; ``dataclasses.fields`` anew for every statistic is slow."""
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(field.name for field in fields(cls))
    return _FIELDS[cls]


def from_json(line: str) -> Record:
    """Decode the record in one line of JSON.

    Raises:
        SchemaError: If the line is no roledrift record, or was written by a newer version.
    """
    try:
        body = json.loads(line)
    except json.JSONDecodeError as error:
        raise SchemaError(f"not a JSON line: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise SchemaError("not a record: the JSON is nested too deeply") from None
    if not isinstance(body, dict):
        raise SchemaError(f"a record is a JSON object, got {type(body).__name__}")
    return from_plain(body)


def from_plain(body: Mapping[str, Any]) -> Record:
    """Build the record from decoded JSON; raises like :func:`from_json`."""
    version = body.get("v")
    if not isinstance(version, int):
        raise SchemaError("a record has a whole number under 'v'; this object has none")
    if version > SCHEMA:
        raise SchemaError(
            f"written in schema {version}, this roledrift reads up to {SCHEMA}: "
            "install a newer roledrift"
        )
    kind: Any = RECORD_KINDS.get(str(body.get("kind")))
    if kind is None:
        raise SchemaError(
            f"unknown kind of record {body.get('kind')!r}; known are {sorted(RECORD_KINDS)}"
        )
    try:
        record: Record = _decoder(kind)(body)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).lstrip(". ")
        raise SchemaError(f"malformed {body['kind']} record: {reason}") from error
    return record


def _number(value: Any) -> float:
    if type(value) is float or type(value) is int:
        return float(value)
    if value not in _NON_FINITE:
        raise ValueError(f" is not a number but {value!r}")
    return _NON_FINITE[value]


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f" is not a whole number but {value!r}")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError(f" is neither true nor false but {value!r}")
    return value


_SIMPLE: dict[Any, Callable[[Any], Any]] = {
    float: _number,
    int: _integer,
    str: str,  # also of what is none: a note of a later version stays readable
    bool: _flag,
    Any: lambda value: value,
}


@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """What makes a value of a type from decoded JSON; its errors go on from the name of a field.

    Args:
        hint: A simple type, a dataclass, or a tuple, mapping, Literal or optional of these.
    """
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if hint == Stats:
        return _stats
    if is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return partial(_one_of, args)
    if origin in (Union, types.UnionType):
        (some,) = (_decoder(arg) for arg in args if arg is not type(None))
        return lambda value: None if value is None else some(value)
    if origin is tuple:
        return partial(_items, _decoder(args[0]))
    return partial(_values, _decoder(args[1]))


def _one_of(known: tuple[str, ...], value: Any) -> Any:
    if value not in known:
        raise ValueError(f" {value!r} is none of {known}")
    return value


def _items(item: Callable[[Any], Any], value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise ValueError(" is not a JSON array")
    return tuple(map(item, value))


def _values(item: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(" is not a JSON object")
    return {name: item(member) for name, member in value.items()}


def _object(cls: type[Any]) -> Callable[[Any], Any]:
    """What makes a dataclass from a JSON object; unknown keys are passed over."""
    hints = get_type_hints(cls)
    parts = {field.name: _decoder(hints[field.name]) for field in fields(cls)}
    needed = [
        field.name
        for field in fields(cls)
        if field.default is MISSING and field.default_factory is MISSING
    ]

    def decode(body: Any) -> Any:
        if not isinstance(body, Mapping):
            raise ValueError(" is not a JSON object")
        known = {}
        for name, value in body.items():
            part = parts.get(name)
            if part is not None:
                try:
                    known[name] = part(value)
                except (ValueError, OverflowError) as error:
                    raise ValueError(f".{name}{error}") from None
        for name in needed:
            if name not in known:
                raise ValueError(f" has no {name!r}")
        return cls(**known)

    return decode


_NUMBERS = frozenset({float, int})
_PLAIN = frozenset({float, int, list})


def _finite(body: Mapping[str, Any]) -> bool:
    """Whether all numbers of some statistics are finite, so that nothing has to be decoded.

    A long run has hundreds of thousands: they are looked at together, not one by one.
    """
    if {dict}.issuperset(map(type, body.values())):
        kinds = set(map(type, chain.from_iterable(map(dict.values, body.values()))))
        if kinds <= _PLAIN and all("mean" in stat and "n" in stat for stat in body.values()):
            return list not in kinds or all(map(_plain_lists, body.values()))
    return False


def _plain_lists(stat: Mapping[str, Any]) -> bool:
    lists = [value for value in stat.values() if type(value) is list]
    return all(_NUMBERS.issuperset(map(type, value)) for value in lists)


def _stats(body: Any) -> Mapping[str, Stat]:
    if type(body) is dict and _finite(body):
        return StoredStats(body)
    # Slow path: non-finite or malformed values must be decoded and validated now.
    return _values(_decoder(Stat), body)
