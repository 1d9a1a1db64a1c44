"""Damaged run directories are read as far as they go, and the damage is named."""

from pathlib import Path

import pytest

from roledrift.codec import to_json
from roledrift.errors import StoreError
from roledrift.store.reader import open_run
from tests.store.records import HEADER, alert, sample
from tests.store.test_reader import write


def test_cut_at_every_byte_of_the_last_lines_at_most_one_step_is_lost(tmp_path: Path) -> None:
    writer = write(tmp_path, range(4), writer="w")
    file = tmp_path / "steps.w.jsonl"
    whole = file.read_bytes()
    writer.close()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(ends[1] - 1, len(whole) + 1):
        file.write_bytes(whole[:cut])
        run = open_run(tmp_path)
        complete = max(sum(end <= cut for end in ends) - 1, 0)
        # A line that lacks nothing but its end of line is whole.
        without_newline = cut + 1 in ends[1:]
        assert [one.step for one in run.steps()] == list(range(complete + without_newline))
        half = cut not in (0, *ends) and cut + 1 not in ends
        assert len(run.problems) == half
        if half:
            number = whole[:cut].count(b"\n") + 1
            assert run.problems[0].startswith(f"steps.w.jsonl:{number}: half-written last line")


@pytest.mark.parametrize(
    "broken",
    [
        b"garbage",
        b"\x00" * 64,
        b"\xff\xfe",
        b"[" * 100_000,
        b'"text"',
        b"",
        b"{}",
        b'{"v":1,"kind":"novelty"}',
        b'{"v":1,"kind":"step"}',
        b'{"v":1,"kind":"step","step":1e999}',
        b'{"v":1,"kind":"step","step":2,"groups":{"a":{"b":3}}}',
        to_json(alert(3)).encode(),
    ],
)
def test_a_broken_line_in_the_middle_is_named_and_the_rest_is_read(
    tmp_path: Path, broken: bytes
) -> None:
    write(tmp_path, range(4), writer="w")
    file = tmp_path / "steps.w.jsonl"
    lines = file.read_bytes().splitlines()
    file.write_bytes(b"\n".join([*lines[:3], broken, *lines[4:], b""]))
    run = open_run(tmp_path)
    assert [one.step for one in run.steps()] == [0, 1, 3]
    (problem,) = run.problems
    assert problem.startswith("steps.w.jsonl:4: ")


def test_a_half_written_header_is_a_clear_error_at_every_byte(tmp_path: Path) -> None:
    whole = to_json(HEADER).encode()
    for cut in range(len(whole)):
        (tmp_path / "run.json").write_bytes(whole[:cut])
        with pytest.raises(StoreError, match="restore the file"):
            open_run(tmp_path)


@pytest.mark.parametrize("content", ["[]", "3", '{"v":1,"kind":"step","step":1}', '{"v":1}'])
def test_a_header_of_another_kind_is_a_clear_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(StoreError, match=r"run\.json"):
        open_run(tmp_path)


def test_an_unreadable_steps_file_costs_that_file(tmp_path: Path) -> None:
    write(tmp_path, range(2), writer="a")
    (tmp_path / "steps.b.jsonl").mkdir()
    run = open_run(tmp_path)
    assert len(run.steps()) == 2
    assert run.problems[0].startswith("steps.b.jsonl: cannot be read")


def test_an_unreadable_samples_file_costs_that_file(tmp_path: Path) -> None:
    writer = write(tmp_path, range(3), writer="w")
    for number in range(3):
        writer.write_samples(number, [sample(number, f"text {number}")])
    broken = tmp_path / "samples/00000001-w.parquet"
    for content in (b"", b"PAR1", broken.read_bytes()[:-9], b"PAR1" + b"\x00" * 100 + b"PAR1"):
        broken.write_bytes(content)
        run = open_run(tmp_path)
        assert [one.text for one in run.samples()] == ["text 0", "text 2"]
        assert run.problems[0].startswith("samples/00000001-w.parquet: unreadable")
    (tmp_path / "samples/.00000009-w.parquet.tmp").write_bytes(b"half")
    assert len(open_run(tmp_path).samples()) == 2


def test_samples_of_other_shapes_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write(tmp_path, range(1), writer="w")
    (tmp_path / "samples").mkdir()
    rows = pa.table({"step": [0], "role": ["generator"], "text": ["hi"], "novelty": [1.5]})
    pq.write_table(rows, tmp_path / "samples/00000000-x.parquet")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "samples/00000000-y.parquet")
    run = open_run(tmp_path)
    assert [(one.text, one.finish) for one in run.samples()] == [("hi", "unknown")]
    assert run.problems[0].startswith("samples/00000000-y.parquet:1: left out")


def test_texts_that_unpack_to_more_than_memory_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes of Parquet can hold one long text a million times."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    write(tmp_path, range(1), writer="w")
    (tmp_path / "samples").mkdir()
    monkeypatch.setattr("roledrift.store.texts.MOST_BYTES", 3 * 10**7)
    rows = pa.table(
        {"step": [0] * 5000, "role": ["generator"] * 5000, "text": ["x" * 10**4] * 5000}
    )
    pq.write_table(rows, tmp_path / "samples/00000000-x.parquet")
    run = open_run(tmp_path)
    assert len(run.samples()) == 2048
    assert "the rest after 2048 texts is left out" in run.problems[0]
