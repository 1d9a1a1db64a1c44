import io
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from roledrift.errors import SchemaError
from roledrift.store import texts


def packed(rows: int, text: str, **metadata: str) -> bytes:
    table = pa.table({"step": [0] * rows, "text": [text] * rows, "slot": [None] * rows})
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), out)
    return out.getvalue()


def test_rows_are_records_without_what_is_absent() -> None:
    body = packed(2, "hi")
    assert texts.count(body) == 2
    assert list(texts.rows(body, "f")) == [{"v": 1, "kind": "sample", "step": 0, "text": "hi"}] * 2


def test_a_newer_version_is_refused() -> None:
    with pytest.raises(SchemaError, match="f is written in schema 9"):
        list(texts.rows(packed(1, "hi", **{"roledrift.schema": "9"}), "f"))


def test_what_unpacks_to_too_much_is_read_as_far_as_it_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = packed(5000, "x" * 10_000)
    assert len(body) < 100_000
    monkeypatch.setattr("roledrift.store.texts.MOST_BYTES", 3 * 10**7)
    read = []
    with pytest.raises(OSError, match="28 MiB of texts"):
        read.extend(texts.rows(body, "f"))
    rows = texts.rows(body, "f")
    assert len(list(islice(rows, 2048))) == 2048
