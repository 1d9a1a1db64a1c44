"""Records to JSON lines and back.

Strict JSON has no non-finite numbers, and here they are the signal: they travel as the strings
``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Unknown keys of a known schema are passed over and
never an error; a newer schema is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain
from math import isfinite
from operator import attrgetter
from typing import Any, get_args

import orjson

from roledrift.errors import SchemaError
from roledrift.judgement import (
    SEVERITIES,
    Alert,
    Consequence,
    Incident,
    Level,
    Severity,
    TextPair,
    Verdict,
)
from roledrift.records import (
    SCHEMA,
    Checkpoint,
    GramRecord,
    RunHeader,
    Sample,
    Stat,
    StepRecord,
    StoredStats,
)
from roledrift.workflow import Role, Workflow

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
    """``record`` as JSON-ready values, with ``v`` and ``kind``; absent values are left out."""
    clean: dict[str, Any] = {"v": SCHEMA, "kind": _NAMES[type(record)]}
    clean.update(_encode(record))
    return clean


def to_json(record: Record) -> str:
    """One line of strict JSON for ``record``."""
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
        if all(_logged(one) for one in value.body.values()):
            return value.body
        return {name: _encode_stat(one) for name, one in value.items()}
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
    found = {"n": n, "mean": mean} if known else {"n": _encode(n), "mean": _encode(mean)}
    rest = _rest_of_stat(stat)
    if rest != _NOTHING:
        for name, item in zip(_REST, rest, strict=True):
            if item is not None:
                found[name] = _encode(item)
    return found


def _logged(body: Mapping[str, Any]) -> bool:
    """Whether stored numbers are those of a logged mean, and JSON as they are."""
    n, mean = body["n"], body["mean"]
    return len(body) == 2 and type(n) is int and type(mean) is float and isfinite(mean)


_REST = tuple(one.name for one in fields(Stat))[2:]
_NOTHING = (None,) * len(_REST)
_rest_of_stat = attrgetter(*_REST)
"""All that a logged mean has not."""

_FIELDS: dict[type[Any], tuple[str, ...]] = {}


def _field_names(cls: type[Any]) -> tuple[str, ...]:
    """Names of a dataclass's fields; ``dataclasses.fields`` anew for every statistic is slow."""
    if cls not in _FIELDS:
        _FIELDS[cls] = tuple(one.name for one in fields(cls))
    return _FIELDS[cls]


def from_json(line: str) -> Record:
    """The record in one line of JSON.

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
    """The record in decoded JSON; raises like :func:`from_json`."""
    version = body.get("v")
    if not isinstance(version, int):
        raise SchemaError("a record has a whole number under 'v'; this object has none")
    if version > SCHEMA:
        raise SchemaError(
            f"written in schema {version}, this roledrift reads up to {SCHEMA}: "
            "install a newer roledrift"
        )
    kind = RECORD_KINDS.get(str(body.get("kind")))
    if kind is None:
        raise SchemaError(
            f"unknown kind of record {body.get('kind')!r}; known are {sorted(RECORD_KINDS)}"
        )
    try:
        return _DECODERS[kind](body)
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        raise SchemaError(f"malformed {body['kind']} record: {error}") from error


def _number(value: Any) -> float:
    return _NON_FINITE[value] if type(value) is str else float(value)


def _optional(value: Any) -> float | None:
    return None if value is None else _number(value)


_STAT_NAMES = frozenset(_field_names(Stat))


def _strings(value: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(item) for item in value)


def _known(cls: type[Any], body: Mapping[str, Any]) -> dict[str, Any]:
    names = _field_names(cls)
    return {key: value for key, value in body.items() if key in names}


_NUMBERS = frozenset({float, int})
_PLAIN = frozenset({float, int, list})


def _whole(body: Mapping[str, Any]) -> bool:
    """Whether all numbers of some statistics are finite, so that nothing has to be decoded.

    A long run has hundreds of thousands: they are looked at together, not one by one.
    """
    if {dict}.issuperset(map(type, body.values())):
        kinds = set(map(type, chain.from_iterable(map(dict.values, body.values()))))
        if kinds <= _PLAIN and all("mean" in one and "n" in one for one in body.values()):
            return list not in kinds or all(map(_plain_lists, body.values()))
    return False


def _plain_lists(one: Mapping[str, Any]) -> bool:
    lists = [value for value in one.values() if type(value) is list]
    return all(_NUMBERS.issuperset(map(type, value)) for value in lists)


def _stats(body: Mapping[str, Any]) -> Mapping[str, Stat]:
    if not _whole(body):
        # Something is not finite, or malformed, which has to be noticed here.
        return {name: _stat(stat) for name, stat in body.items()}
    return StoredStats(body)


def _stat(body: Mapping[str, Any]) -> Stat:
    known: dict[str, Any] = {
        key: value if type(value) is float else _number_or_several(value)
        for key, value in body.items()
        if key in _STAT_NAMES
    }
    return Stat(**known)


def _number_or_several(value: Any) -> Any:
    return tuple(_number(one) for one in value) if type(value) is list else _number(value)


def _step(body: Mapping[str, Any]) -> StepRecord:
    known = _known(StepRecord, body)
    known["step"] = int(known["step"])
    known["groups"] = {group: _stats(its) for group, its in known.get("groups", {}).items()}
    known["base"] = {group: _stats(its) for group, its in known.get("base", {}).items()}
    known["solved"] = str(known.get("solved", ""))
    known["totals"] = {name: _number(value) for name, value in known.get("totals", {}).items()}
    known["cost_ms"] = {name: _number(value) for name, value in known.get("cost_ms", {}).items()}
    known["missing"] = _strings(known.get("missing", ()))
    known["gradients"] = tuple(_gram(one) for one in known.get("gradients", ()))
    known["checkpoints"] = tuple(_checkpoint(one) for one in known.get("checkpoints", ()))
    return StepRecord(**known)


def _checkpoint(body: Mapping[str, Any]) -> Checkpoint:
    return Checkpoint(int(body["step"]), str(body["path"]))


def _gram(body: Mapping[str, Any]) -> GramRecord:
    known = _known(GramRecord, body)
    known["labels"] = _strings(known["labels"])
    known["products"] = _rows(known["products"])
    known["halves"] = {role: _rows(its) for role, its in known.get("halves", {}).items()}
    known["relative_error"] = _number(known.get("relative_error", 0.0))
    for name in ("closure", "covered"):
        known[name] = _optional(known.get(name))
    known["bypassed"] = _strings(known.get("bypassed", ()))
    return GramRecord(**known)


def _rows(value: Sequence[Sequence[Any]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(_number(x) for x in row) for row in value)


def _verdict(body: Mapping[str, Any]) -> Verdict:
    known = _known(Verdict, body)
    for name in ("value", "threshold", "baseline", "evidence"):
        known[name] = _optional(known.get(name))
    known["needs"] = _strings(known.get("needs", ()))
    return Verdict(**known)


def _alert(body: Mapping[str, Any]) -> Alert:
    known = _known(Alert, body)
    if known["level"] not in get_args(Level):
        raise ValueError(f"level {known['level']!r} is none of {get_args(Level)}")
    for name in ("value", "threshold", "baseline", "evidence"):
        known[name] = _optional(known.get(name))
    known["advice"] = _strings(known.get("advice", ()))
    known["pairs"] = tuple(TextPair(**_known(TextPair, one)) for one in known.get("pairs", ()))
    if known.get("checkpoint") is not None:
        known["checkpoint"] = _checkpoint(known["checkpoint"])
    if known.get("severity") is not None:
        known["severity"] = _severity(known["severity"])
    return Alert(**known)


def _incident(body: Mapping[str, Any]) -> Incident:
    known = _known(Incident, body)
    known["severity"] = _severity(known["severity"])
    known["advice"] = _strings(known.get("advice", ()))
    known["alerts"] = _strings(known.get("alerts", ()))
    known["consequences"] = tuple(_consequence(one) for one in known.get("consequences", ()))
    if known.get("checkpoint") is not None:
        known["checkpoint"] = _checkpoint(known["checkpoint"])
    for name in ("step", "onset", "reported"):
        known[name] = int(known[name])
    return Incident(**known)


def _consequence(body: Mapping[str, Any]) -> Consequence:
    known = _known(Consequence, body)
    known["severity"] = _severity(known["severity"])
    return Consequence(**known)


def _severity(value: Any) -> Severity:
    if value not in SEVERITIES:
        raise ValueError(f"severity {value!r} is none of {SEVERITIES}")
    severity: Severity = value
    return severity


def _sample(body: Mapping[str, Any]) -> Sample:
    known = _known(Sample, body)
    for name in ("reward", "advantage"):
        if name in known:
            known[name] = _number(known[name])
    known["flags"] = _strings(known.get("flags", ()))
    return Sample(**known)


def _header(body: Mapping[str, Any]) -> RunHeader:
    known = _known(RunHeader, body)
    workflow = known["workflow"]
    roles = tuple(Role(**_known(Role, role)) for role in workflow["roles"])
    for name in ("config", "versions", "notes", "yardsticks"):
        if not isinstance(known.get(name, {}), dict):
            raise TypeError(f"{name} is not a JSON object")
    known["workflow"] = Workflow(str(workflow["name"]), roles, _strings(workflow["policies"]))
    return RunHeader(**known)


_DECODERS: dict[type[Any], Callable[[Mapping[str, Any]], Record]] = {
    StepRecord: _step,
    Alert: _alert,
    Incident: _incident,
    RunHeader: _header,
    Sample: _sample,
    Verdict: _verdict,
}
