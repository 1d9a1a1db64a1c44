"""Logs are written by the real wandb, offline, and read without it."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from roledrift_importers.wandb_log import About, LoggedRow, entries, is_log

from roledrift.ingest.ledger import Ledger

WRITE = """
import json, sys, wandb
folder, name, rows, config = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
settings = wandb.Settings(x_disable_stats=True, silent=True, console="off", mode="offline")
run = wandb.init(project="p", name="n", id=name, dir=folder, config=config, settings=settings)
for step, row in rows:
    run.log(row, step=step)
run.alert(title="a", text="b")
run.finish()
"""


def write(folder: Path, name: str, rows: list[tuple[int, dict[str, Any]]], **config: Any) -> Path:
    """What the real wandb leaves for these ``log()`` calls: the folder of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [sys.executable, "-c", WRITE, str(folder), name, json.dumps(rows), json.dumps(config)],
        check=True,
        capture_output=True,
        env={**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true"},
    )
    (found,) = (folder / "wandb").glob(f"offline-run-*-{name}")
    return found


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows: list[tuple[int, dict[str, Any]]] = [
        (
            s,
            {
                "a/b": s / 4,
                "n": {"x": -s},
                "t": "w" * (40_000 if s == 3 else 4),
                "ok": True,
                "bad": math.nan,
            },
        )
        for s in range(60)
    ]
    folder = write(tmp_path_factory.mktemp("w"), "abc", rows, seed=5)
    return folder / "run-abc.wandb"


def test_everything_that_was_logged_is_read(log: Path) -> None:
    ledger = Ledger()
    found = list(entries(log, ledger))
    rows = [one for one in found if isinstance(one, LoggedRow)]
    assert [row.step for row in rows] == list(range(60))
    assert [row.data["a/b"] for row in rows] == [s / 4 for s in range(60)]
    assert [row.data["n/x"] for row in rows] == [-s for s in range(60)]
    assert rows[3].data["t"] == "w" * 40_000  # a record over two blocks
    assert rows[0].data["ok"] in (True, 1)
    about = next(one for one in found if isinstance(one, About) and one.facts)
    assert (about.facts["id"], about.facts["project"], about.config["seed"]) == ("abc", "p", 5)
    assert ledger.counts == {}
    assert is_log(log)


def test_a_tail_that_is_cut_off_costs_only_itself(log: Path, tmp_path: Path) -> None:
    file = tmp_path / "run-x.wandb"
    raw = log.read_bytes()
    file.write_bytes(raw[: len(raw) // 3])
    ledger = Ledger()
    rows = [one for one in entries(file, ledger) if isinstance(one, LoggedRow)]
    assert rows
    assert [row.step for row in rows] == list(range(len(rows)))
    assert ledger.counts == {"wandb log is cut off": 1}


def test_a_damaged_block_costs_that_block(log: Path, tmp_path: Path) -> None:
    raw = bytearray(log.read_bytes())
    raw[2000] ^= 0xFF
    file = tmp_path / "run-x.wandb"
    file.write_bytes(raw)
    ledger = Ledger()
    rows = [one for one in entries(file, ledger) if isinstance(one, LoggedRow)]
    assert rows[-1].step == 59
    assert "wandb record with a wrong checksum" in ledger.counts


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_no_damage_raises(
    log: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    import struct
    import zlib

    raw = bytearray(log.read_bytes()[: 1 << 14])
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    body = data.draw(st.binary(max_size=60))
    head = struct.pack("<IHB", zlib.crc32(body, zlib.crc32(b"\x01")), len(body), 1)
    file = tmp_path_factory.mktemp("d") / "run-x.wandb"
    for content in (bytes(raw), b":W&B" + struct.pack("<HB", 0xBEE1, 0) + head + body):
        file.write_bytes(content)
        list(entries(file, Ledger()))


def test_no_log_at_all(tmp_path: Path) -> None:
    file = tmp_path / "x.wandb"
    file.write_bytes(b"something else")
    ledger = Ledger()
    assert list(entries(file, ledger)) == []
    assert list(entries(tmp_path / "no", ledger)) == []
    assert not is_log(file)
    assert sum(ledger.counts.values()) == 2
