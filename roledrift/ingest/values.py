"""Foreign values as numbers, whole numbers and texts, or as missing. Nothing here raises."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_WRAPPED = re.compile(r"(?:np|numpy|torch)?\.?(?:float|int|bfloat|tensor)\w*\((.*)\)\Z", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z")
_WORDS = {
    "nan": math.nan,
    "inf": math.inf,
    "infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "true": 1.0,
    "false": 0.0,
}
_LARGEST = 2**62
_FIRST, _LAST = 1e9, 1e11
"""Seconds since 1970 that are a time of day: from 2001 on. Smaller numbers count something else."""

_LONGEST_TIME = 40


def number(value: object) -> float | None:
    """A float; None for everything that is not one. Booleans are 1 and 0; ``NaN`` is kept."""
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    if isinstance(value, str) and len(value) < 400:
        word = value.strip()
        wrapped = _WRAPPED.match(word)
        word = wrapped[1].strip() if wrapped else word
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        return float(word) if _NUMBER.match(word) else None
    return None


def integer(value: object) -> int | None:
    """A whole number; None for anything else, also for one that 64 bits cannot hold."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < _LARGEST else None
    exact = number(value)
    if exact is None or not math.isfinite(exact) or abs(exact) >= _LARGEST or exact % 1:
        return None
    return int(exact)


def moment(value: object) -> float | None:
    """Seconds since 1970, from seconds, milliseconds or ISO 8601; None for anything else."""
    seconds = number(value)
    if seconds is None and isinstance(value, str) and len(value) < _LONGEST_TIME:
        try:
            then = datetime.fromisoformat(value.strip())
            seconds = then.replace(tzinfo=then.tzinfo or UTC).timestamp()
        except (ValueError, OverflowError):
            return None
    if seconds is not None and _FIRST <= seconds / 1000 < _LAST:
        seconds /= 1000
    return seconds if seconds is not None and _FIRST <= seconds < _LAST else None


def text(value: object) -> str | None:
    """A text; None for anything else."""
    return value if isinstance(value, str) else None


def truth(value: object) -> bool | None:
    """True or False; None for anything else."""
    if isinstance(value, bool):
        return value
    exact = number(value)
    return None if exact is None or math.isnan(exact) else bool(exact)


def rows(value: object) -> list[dict[str, Any]]:
    """The mappings in a list; empty for anything else."""
    if not isinstance(value, list):
        return []
    return [row for row in value if isinstance(row, dict)]


def section(value: object, key: str) -> Mapping[str, Any]:
    """The mapping under ``key`` of a mapping; empty if there is none."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def at(value: object, path: str) -> Any:
    """What lies at a dotted path of nested mappings; a key with dots in it wins. None if absent."""
    # Nearly every row is a dict with the key itself; asking whether it is a Mapping takes longer.
    if (type(value) is dict or isinstance(value, Mapping)) and path in value:
        return value[path]
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def has(value: Mapping[str, Any], path: str) -> bool:
    """Whether there is anything at a dotted path, be it None."""
    if path in value:
        return True
    above, dot, key = path.rpartition(".")
    inner = at(value, above) if dot else None
    return isinstance(inner, Mapping) and key in inner


def content(value: object) -> str | None:
    """The text of a chat message's content: a text, or a list of parts with texts."""
    if isinstance(value, str):
        return value
    parts = [part["text"] for part in rows(value) if isinstance(part.get("text"), str)]
    return "".join(parts) if parts else None


def prompt_of(messages: object) -> str:
    """The last message that the role was given, for telling roles apart and for the reader."""
    for message in reversed(rows(messages)):
        if message.get("role") != "assistant":
            return content(message.get("content")) or ""
    return messages if isinstance(messages, str) else ""
