"""Files of texts in a run directory: Parquet, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from roledrift.store.header import refuse_newer

BROKEN = (OSError, ValueError, pa.ArrowException)
"""What reading a file raises that is damaged or too large."""

MOST_BYTES = 2**30
"""Most bytes of texts that a file may unpack to."""

_ROWS = 1024


def count(body: bytes) -> int:
    """Number of texts, from the file's metadata alone."""
    return int(pq.read_metadata(pa.BufferReader(body)).num_rows)


def rows(body: bytes, where: str) -> Iterator[dict[str, Any]]:
    """Rows of a file as plain records; a small file can unpack to more than memory holds.

    Raises:
        SchemaError: If a newer version wrote it.
        OSError: After :data:`MOST_BYTES`; for damage, one of :data:`BROKEN`.
    """
    file = pq.ParquetFile(pa.BufferReader(body))
    version = (file.schema_arrow.metadata or {}).get(b"roledrift.schema", b"1")
    refuse_newer(int(version) if version.isdigit() else 1, where)
    held = 0
    for batch in file.iter_batches(_ROWS):
        held += batch.nbytes
        if held > MOST_BYTES:
            raise OSError(f"more than {MOST_BYTES // 2**20} MiB of texts in one step")
        for row in batch.to_pylist():
            known = {key: value for key, value in row.items() if value is not None}
            yield {"v": 1, "kind": "sample", **known}
