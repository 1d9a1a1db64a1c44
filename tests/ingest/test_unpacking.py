import bz2
import gc
import gzip
import lzma
import os
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from roledrift.errors import RoleDriftError
from roledrift.ingest import formats
from roledrift.ingest.importing import import_run, job_for
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import document, lines
from roledrift.ingest.unpacking import BROKEN, matching, opened, plain, present

TEXT = '{"a": "é"}\r\n{"a": 2}\n'
PACK = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("how", PACK)
def test_files_are_told_by_their_first_bytes(tmp_path: Path, how: str, encoding: str) -> None:
    file = tmp_path / "a.jsonl"  # whatever it is called
    file.write_bytes(PACK[how](TEXT.encode()))
    ledger = Ledger()
    assert [line.decode() for _, line in lines(file, ledger)] == ['{"a": "é"}', '{"a": 2}']
    assert ledger.counts == {}


@pytest.mark.parametrize("how", PACK)
def test_nothing_stays_open(tmp_path: Path, how: str) -> None:
    file = tmp_path / "a"
    file.write_bytes(PACK[how](TEXT.encode()))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with opened(file) as stream:
            stream.readline()
        del stream
        gc.collect()
    assert [str(one.message) for one in told] == []


@pytest.mark.parametrize("how", ["gz", "bz2", "xz", "zst"])
def test_what_is_packed_and_damaged_raises_what_is_caught(tmp_path: Path, how: str) -> None:
    raw = PACK[how](bytes(range(256)) * 400)
    file = tmp_path / "a"
    for damaged in (raw[: len(raw) // 2], raw[:20] + b"\x00" * 20 + raw[40:], raw[:4]):
        file.write_bytes(damaged)
        try:
            with opened(file) as found:
                found.read()
        except BROKEN:
            pass
        ledger = Ledger()
        list(lines(file, ledger))
        assert document(file, Ledger()) is None


def test_names(tmp_path: Path) -> None:
    assert [plain(name) for name in ("1.jsonl.zst", "1.jsonl", "a.gz.b")] == [
        "1.jsonl",
        "1.jsonl",
        "a.gz.b",
    ]
    for name in ("b.json.gz", "a.json", "c.txt"):
        (tmp_path / name).write_text("x")
    assert [one.name for one in matching(tmp_path, "*.json")] == ["a.json", "b.json.gz"]
    found = present(tmp_path / "b.json")
    assert found is not None
    assert found.name == "b.json.gz"
    assert present(tmp_path / "no") is None


def test_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    for name in ("1.jsonl", "x.wandb", "y.log", "env_agent.log"):
        os.mkfifo(tmp_path / name)
    for form in formats().values():
        for source in (tmp_path, *tmp_path.iterdir()):
            form.sniff(source)
            if form.name != "table":
                with pytest.raises(RoleDriftError):
                    import_run((form, "forced"), job_for(source), None)
