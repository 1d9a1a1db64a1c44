import gzip
from pathlib import Path

import pytest

from roledrift.ingest import lines as module
from roledrift.ingest.ledger import Ledger
from roledrift.ingest.lines import document, documents, first_document, head, lines, walk


def test_half_lines_and_other_things_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(
        b'{"a":1}\n\n[1]\n{"a":\n\xff\n{"a":"\xff"}\n{"a":' + b"9" * 5000 + b'}\n{"a":2}'
    )
    ledger = Ledger()
    found = [body["a"] for _, body in documents(file, ledger)]
    assert found == [1, "\ufffd", 2]
    assert ledger.counts == {
        "broken or half-written JSON": 3,
        "bytes that are no UTF-8 were replaced": 2,
        "line is not a JSON object": 1,
    }


def test_bytes_that_look_like_another_encoding(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b'\x00\x00\x00\n\xef\xbb\xbf{"a":1}\n{\x00"\x00\n')
    ledger = Ledger()
    assert [body["a"] for _, body in documents(file, ledger)] == [1]
    assert ledger.counts == {"broken or half-written JSON": 2}


def test_deep_nesting_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("[" * 100_000 + "\n")
    ledger = Ledger()
    assert list(documents(file, ledger)) == []
    assert ledger.counts == {"broken or half-written JSON": 1}


def test_a_huge_line_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_LINE", 100)
    file = tmp_path / "a.jsonl"
    file.write_text('{"a":1}\n{"a":"' + "x" * 1000 + '"}\n{"a":2}\n')
    ledger = Ledger()
    assert [body["a"] for _, body in documents(file, ledger)] == [1, 2]
    assert ledger.counts == {"line over 64 MiB": 1}


def test_compressed_and_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    whole = gzip.compress(b"\n".join(b'{"a":%d}' % n for n in range(5000)))
    file.write_bytes(whole)
    assert len(list(lines(file, Ledger()))) == 5000
    assert first_document(file) == {"a": 0}
    file.write_bytes(whole[: len(whole) // 2])
    ledger = Ledger()
    assert 0 < len(list(lines(file, ledger))) < 5000
    assert list(ledger.counts) == ["unreadable file (EOFError)"]


def test_documents_and_heads(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    ledger = Ledger()
    assert document(file, ledger) is None
    file.write_text("[1]")
    assert document(file, ledger) is None
    file.write_text('{"a": NaN}')
    assert list(document(file, ledger) or ()) == ["a"]
    assert head(tmp_path / "no") == b""
    assert sum(ledger.counts.values()) == 2


def test_walking_is_bounded_and_not_circular(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert [one.name for one, _ in walk(tmp_path, depth=2)] == [tmp_path.name, "a", "b"]
