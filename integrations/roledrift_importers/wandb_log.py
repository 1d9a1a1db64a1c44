"""The binary transaction log of Weights & Biases (``run-<id>.wandb``), without wandb.

The file is a LevelDB log: a header of 7 bytes (``:W&B``, magic 0xBEE1, version 0), then blocks of
32 KiB with records ``<crc32, length, type>`` where the type says whole, first, middle or last part.
A payload is a protobuf message; the three kinds read here need a dozen field numbers, which wandb
keeps stable because old files must stay readable. Checked against wandb 0.31's own writer.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from roledrift.ingest.ledger import Ledger

_HEADER = b":W&B" + struct.pack("<HB", 0xBEE1, 0)
_BLOCK = 32768
_WHOLE, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_MAX_RECORD = 64 * 2**20
_HISTORY, _CONFIG, _RUN = 2, 5, 17


@dataclass(slots=True)
class LoggedRow:
    """One ``log()`` call: keys of nested dictionaries joined with ``/``."""

    step: int | None
    data: dict[str, object] = field(default_factory=dict)


@dataclass(slots=True)
class About:
    """What the file says of the run: identity and configuration, as far as it got."""

    facts: dict[str, str] = field(default_factory=dict)
    config: dict[str, object] = field(default_factory=dict)


Entry = LoggedRow | About


def is_log(path: Path) -> bool:
    """Whether the file begins like such a log."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER))[:6] == _HEADER[:6]
    except OSError:
        return False


def entries(path: Path, ledger: Ledger) -> Iterator[Entry]:
    """Logged rows and facts in file order. A truncated tail and broken records are counted."""
    if path.exists() and not path.is_file():
        ledger.skip("no regular file", path.name)
        return
    try:
        with path.open("rb") as file:
            if file.read(len(_HEADER))[:6] != _HEADER[:6]:
                ledger.skip("file is no wandb log", path.name)
                return
            for payload in _payloads(file, path.name, ledger):
                try:
                    entry = _entry(payload)
                except (ValueError, IndexError, struct.error, RecursionError):
                    ledger.skip("wandb record that cannot be decoded", path.name)
                    continue
                if entry is not None:
                    yield entry
    except OSError as error:
        ledger.skip(f"unreadable file ({type(error).__name__})", path.name)


def _payloads(file: BinaryIO, name: str, ledger: Ledger) -> Iterator[bytes]:
    parts: list[bytes] = []
    for kind, body in _chunks(file, name, ledger):
        if kind in (_WHOLE, _FIRST):
            parts = []
        elif not parts or not kind:
            parts = []
            continue
        parts.append(body)
        if kind in (_WHOLE, _LAST):
            yield b"".join(parts)
            parts = []
        elif len(parts) * _BLOCK > _MAX_RECORD:
            ledger.skip("wandb record over 64 MiB", name)
            parts = []
    if parts:
        ledger.skip("wandb log is cut off", name)


def _chunks(file: BinaryIO, name: str, ledger: Ledger) -> Iterator[tuple[int, bytes]]:
    """Kind and body of each piece of a record whose checksum is right."""
    at = len(_HEADER)
    file.seek(0)
    while block := file.read(_BLOCK):
        while at + 7 <= len(block):
            crc, length, kind = struct.unpack_from("<IHB", block, at)
            if kind == 0 and length == 0:
                break
            body = block[at + 7 : at + 7 + length]
            at += 7 + length
            if len(body) < length:
                ledger.skip("wandb log is cut off", name)
                return
            if zlib.crc32(body, zlib.crc32(bytes([kind]))) != crc:
                # The rest of the block has no reliable borders; the next one starts anew.
                ledger.skip("wandb record with a wrong checksum", name)
                yield 0, b""
                break
            yield kind, body
        at = 0


Field = tuple[int, int | bytes]


def _entry(payload: bytes) -> Entry | None:
    for number, value in _fields(payload):
        if not isinstance(value, bytes):
            continue
        if number == _HISTORY:
            return _history(value)
        if number == _RUN:
            return _about(value)
        if number == _CONFIG:
            return About(config=_items(value))
    return None


def _history(payload: bytes) -> LoggedRow:
    row = LoggedRow(None)
    rest = _short_items(payload, row.data)
    for number, value in _fields(payload[rest:]):
        if number == 1 and isinstance(value, bytes):
            key, inner_value = _item(value)
            row.data[key] = inner_value
        elif number == 2 and isinstance(value, bytes):
            for inner, count in _fields(value):
                if inner == 1 and isinstance(count, int):
                    row.step = count
    own = row.data.get("_step")
    if row.step is None and isinstance(own, int | float) and own % 1 == 0:
        row.step = int(own)
    return row


def _short_items(payload: bytes, data: dict[str, object]) -> int:
    """Take the leading items of one short key and one short number; where the others begin.

    Nearly all of a log are such items, and the general way takes three times as long: an item is
    ``0A n  12 k <key>  82 01 v <JSON>``.
    """
    at, end = 0, len(payload)
    while at + 4 < end and payload[at] == 0x0A and payload[at + 2] == 0x12:
        stop = at + 2 + payload[at + 1]
        middle = at + 4 + payload[at + 3]
        if payload[at + 1] > 0x7F or stop > end or middle + 3 > stop:
            break
        if payload[middle : middle + 2] != b"\x82\x01" or middle + 3 + payload[middle + 2] != stop:
            break
        try:
            data[payload[at + 4 : middle].decode()] = float(payload[middle + 3 : stop])
        except ValueError:
            break
        at = stop
    return at


def _about(payload: bytes) -> About:
    names = {1: "id", 3: "project", 6: "group", 8: "name"}
    about = About()
    for number, value in _fields(payload):
        if isinstance(value, bytes) and number in names:
            about.facts[names[number]] = value.decode("utf-8", "replace")
        elif isinstance(value, bytes) and number == 4:
            about.config = _items(value)
    return about


def _items(payload: bytes) -> dict[str, object]:
    items = (_item(value) for n, value in _fields(payload) if n == 1 and isinstance(value, bytes))
    return dict(items)


def _item(payload: bytes) -> tuple[str, object]:
    """Key and value; newer writers store plain values in typed fields instead of JSON."""
    key, nested, value = "", [], None
    for number, raw in _fields(payload):
        if isinstance(raw, bytes):
            if number == 1:
                key = raw.decode("utf-8", "replace")
            elif number == 2:
                nested.append(raw.decode("utf-8", "replace"))
            elif number in (8, 16):
                value = _json(raw)
            elif number == 7:
                value = raw.decode("utf-8", "replace")
            elif number == 6 and len(raw) == 8:
                value = struct.unpack("<d", raw)[0]
        elif number == 4:
            value = bool(raw)
        elif number == 5:
            value = (raw >> 1) ^ -(raw & 1)
    return "/".join(nested) or key, value


def _json(raw: bytes) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _fields(payload: bytes) -> Iterator[Field]:
    """Field numbers and values of a protobuf message; fixed-size numbers come as their bytes.

    Raises:
        IndexError: If the message is cut off.
        ValueError: If it is no message.
    """
    at, end = 0, len(payload)
    while at < end:
        tag, at = _varint(payload, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(payload, at)
            yield number, value
        else:
            if wire == 2:
                size, at = _varint(payload, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            if at + size > end:
                raise IndexError("cut off")
            yield number, payload[at : at + size]
            at += size


def _varint(payload: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("varint too long")
