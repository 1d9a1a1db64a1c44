import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roledrift.codec import to_json
from roledrift.errors import SchemaError, StoreError
from roledrift.records import Stat, StepRecord
from roledrift.store.reader import find_runs, is_run, open_run, reference_steps
from roledrift.store.writer import RunWriter
from roledrift.workflow import ORCH_WORKERS
from tests.store.records import HEADER, alert, sample, step


def write(path: Path, numbers: range, **options: object) -> RunWriter:
    writer = RunWriter(path, HEADER, resume=True, **options)  # type: ignore[arg-type]
    for number in numbers:
        writer.write_step(step(number))
    return writer


def test_everything_written_is_read_back(tmp_path: Path) -> None:
    writer = write(tmp_path, range(4))
    writer.write_alert(alert(3))
    writer.write_samples(2, [sample(2), sample(2, "second", "generator")])
    writer.close()
    run = open_run(tmp_path)
    assert run.header == HEADER
    assert run.steps() == [replace(step(n), writer=writer.writer, seq=n) for n in range(4)]
    assert run.alerts() == [alert(3)]
    assert [(s.text, s.flags) for s in run.samples()] == [
        ("hello", ("canary", "longest")),
        ("second", ("canary", "longest")),
    ]
    assert math.isnan(run.samples()[0].advantage)
    assert (run.state, run.seams, run.problems) == ("finished", (), ())


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_non_finite_numbers_survive(tmp_path: Path, odd: float) -> None:
    writer = RunWriter(tmp_path, HEADER)
    writer.write_step(replace(step(0, odd), totals={"reward": odd}))
    record = open_run(tmp_path).steps()[0]
    for number in (record.totals["reward"], record.mean("aggregator", "length")):
        assert number is not None
        assert repr(number) == repr(odd)


def test_states(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    assert open_run(tmp_path).state == "empty"
    writer.write_step(step(0))
    assert open_run(tmp_path).state == "open"
    writer.close()
    assert open_run(tmp_path).state == "finished"
    resumed = RunWriter(tmp_path, HEADER, resume=True)
    assert open_run(tmp_path).state == "open"
    resumed.write_step(step(0))
    resumed.close()
    assert open_run(tmp_path).state == "finished"


def test_a_crashed_segment_that_was_taken_over_does_not_keep_the_run_open(tmp_path: Path) -> None:
    write(tmp_path, range(5))
    write(tmp_path, range(3, 8)).close()
    run = open_run(tmp_path)
    assert (run.state, run.seams) == ("finished", (3,))


def test_a_parallel_writer_that_goes_on_keeps_the_run_open(tmp_path: Path) -> None:
    write(tmp_path, range(5)).close()
    other = RunWriter(tmp_path, HEADER, resume=True)
    other.write_step(step(0, 2.0, name="chi2"))
    run = open_run(tmp_path)
    assert (run.state, run.seams) == ("open", ())


def test_unknown_keys_are_passed_over(tmp_path: Path) -> None:
    write(tmp_path, range(1), writer="w")
    body = json.loads(to_json(step(1))) | {"novelty": {"x": 1}}
    body["groups"]["aggregator"]["length"]["p99"] = 7.0
    with open(tmp_path / "steps.w.jsonl", "a") as file:
        file.write(json.dumps(body) + "\n")
    run = open_run(tmp_path)
    assert (len(run.steps()), run.problems) == (2, ())


def test_a_newer_schema_is_refused_with_the_way_out(tmp_path: Path) -> None:
    write(tmp_path, range(2), writer="w")
    with open(tmp_path / "steps.w.jsonl", "a") as file:
        file.write('{"v":2,"kind":"step","step":2}\n')
    with pytest.raises(
        SchemaError, match=r"steps\.w\.jsonl:4 .*schema 2.*install a newer roledrift"
    ):
        open_run(tmp_path).steps()
    (tmp_path / "run.json").write_text('{"v":2,"kind":"something new"}')
    with pytest.raises(SchemaError, match="install a newer roledrift"):
        open_run(tmp_path)


def test_a_directory_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such directory"):
        open_run(tmp_path / "nothing")
    with pytest.raises(StoreError, match=r"not a run directory, it has no run\.json"):
        open_run(tmp_path)
    (tmp_path / "steps.w.jsonl").touch()
    with pytest.raises(StoreError, match=r"has steps but no run\.json"):
        open_run(tmp_path)


def test_a_folder_of_runs_is_not_a_run(tmp_path: Path) -> None:
    RunWriter(tmp_path / "a" / "b", HEADER).close()
    with pytest.raises(StoreError, match=r"a folder of 1 run, not a run; give one, such as .*/a/b"):
        open_run(tmp_path)


def test_only_a_header_is_an_empty_run(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(to_json(HEADER))
    run = open_run(tmp_path)
    assert (run.state, run.steps(), run.alerts(), run.samples()) == ("empty", [], [], [])
    assert (run.seams, run.problems) == ((), ())


def test_a_run_is_opened_by_its_header_file_too(tmp_path: Path) -> None:
    write(tmp_path, range(1))
    assert len(open_run(tmp_path / "run.json").steps()) == 1
    assert find_runs(tmp_path / "run.json") == [tmp_path]


def test_a_bounded_number_of_texts_is_read_evenly(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path, HEADER)
    for number in range(4):
        writer.write_step(step(number))
        writer.write_samples(number, [sample(number, f"text {at}") for at in range(10)])
    run = open_run(tmp_path)
    assert run.sample_count == 40
    assert run.sample_steps == (0, 1, 2, 3)
    assert [one.text for one in run.samples(8)] == ["text 0", "text 1"] * 4
    assert len(run.samples(8, complete=(3,))) == 3 * 2 + 8


def test_samples_of_a_newer_schema_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    write(tmp_path, range(1), writer="w")
    (tmp_path / "samples").mkdir()
    rows = pa.table({"step": [0]}).replace_schema_metadata({"roledrift.schema": "2"})
    pq.write_table(rows, tmp_path / "samples/00000000-x.parquet")
    with pytest.raises(SchemaError, match="install a newer"):
        open_run(tmp_path).samples()


def test_what_a_later_segment_replayed_replaces_the_earlier(tmp_path: Path) -> None:
    first = RunWriter(tmp_path, HEADER)
    for number in range(6):
        first.write_step(step(number, 1.0))
        first.write_samples(number, [sample(number, "old")])
    first.write_alert(alert(2))
    first.write_alert(alert(5, onset=4))
    second = RunWriter(tmp_path, HEADER, resume=True)
    for number in range(4, 8):
        second.write_step(step(number, 2.0))
        second.write_samples(number, [sample(number, "new")])
    second.write_alert(alert(7, state="closed"))
    run = open_run(tmp_path)
    means = [one.mean("aggregator", "length") for one in run.steps()]
    assert means == [1.0] * 4 + [2.0] * 4
    assert [one.text for one in run.samples()] == ["old"] * 4 + ["new"] * 4
    assert [(one.step, one.state) for one in run.alerts()] == [(2, "open"), (7, "closed")]
    assert run.seams == (4,)


def test_segments_are_ordered_by_number_not_by_clock(tmp_path: Path) -> None:
    write(tmp_path, range(2), writer="z")
    second = RunWriter(tmp_path, HEADER, resume=True, writer="a")
    second.write_step(step(1, 9.0))
    file = tmp_path / "steps.a.jsonl"
    start, rest = file.read_text().split("\n", 1)
    file.write_text(json.dumps(json.loads(start) | {"time": "1970-01-01T00:00:00Z"}) + "\n" + rest)
    assert open_run(tmp_path).steps()[1].mean("aggregator", "length") == 9.0


def test_a_steps_file_without_a_start_line_is_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(to_json(HEADER))
    (tmp_path / "steps.import.jsonl").write_text("".join(to_json(step(n)) + "\n" for n in (1, 0)))
    run = open_run(tmp_path)
    assert [one.step for one in run.steps()] == [0, 1]
    assert run.state == "open"


def test_find_runs_is_recursive_sorted_and_stops_at_runs(tmp_path: Path) -> None:
    for name in ("b", "a/deep/er", "a/x", "b/nested", ".hidden"):
        RunWriter(tmp_path / name, HEADER).close()
    (tmp_path / "empty").mkdir()
    assert find_runs(tmp_path) == [tmp_path / "a/deep/er", tmp_path / "a/x", tmp_path / "b"]
    assert is_run(tmp_path / "b")
    assert not is_run(tmp_path), "a folder of runs is none"
    assert not is_run(tmp_path / "nothing")
    assert find_runs(tmp_path / "b") == [tmp_path / "b"]
    assert find_runs(tmp_path / "empty") == []
    with pytest.raises(StoreError, match="no such directory"):
        find_runs(tmp_path / "nothing")


def test_a_run_on_a_server_is_refused_with_advice() -> None:
    for look in (open_run, find_runs):
        with pytest.raises(StoreError, match="mount the bucket"):
            look("s3://bucket/run")


PARTS = ("length", "chi2")


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, int, int]:
    last = draw(st.integers(1, 12))
    crashed = draw(st.integers(0, last))
    return last, crashed, draw(st.integers(0, crashed))


@settings(max_examples=40, deadline=None)
@given(histories(), st.booleans())
def test_two_writers_and_a_resume_read_like_one_writer(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[int, int, int], both: bool
) -> None:
    last, crashed, again = history
    folder = tmp_path_factory.mktemp("merge")
    split, single = folder / "split", folder / "single"
    parts = [RunWriter(split, HEADER, resume=True, writer=part) for part in PARTS]
    for number in range(crashed + 1):
        for part, writer in zip(PARTS, parts, strict=True):
            stale = number >= again and (both or part == "length")
            writer.write_step(step(number, -1.0 if stale else number, name=part))
    if not both:
        for number in range(crashed + 1, last + 1):
            parts[1].write_step(step(number, number, name="chi2"))
    for part in PARTS if both else PARTS[:1]:
        resumed = RunWriter(split, HEADER, resume=True)
        for number in range(again, last + 1):
            resumed.write_step(step(number, number, name=part))
        resumed.close()
    one = RunWriter(single, HEADER)
    for number in range(last + 1):
        stats = {part: Stat(4.0, number) for part in PARTS}
        one.write_step(replace(step(number), groups={"aggregator": stats}))

    def plain(path: Path) -> list[StepRecord]:
        return [replace(record, writer="", seq=0) for record in open_run(path).steps()]

    assert plain(split) == plain(single)
    assert open_run(split).problems == ()


def test_a_reference_run_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "reference"
    assert reference_steps("", HEADER.workflow) == []
    with pytest.raises(StoreError):
        reference_steps(str(path), HEADER.workflow)
    write(path, range(3)).close()
    assert len(reference_steps(str(path), HEADER.workflow)) == 3
    with pytest.raises(StoreError, match="same workflow"):
        reference_steps(str(path), ORCH_WORKERS)
    write(tmp_path / "empty", range(0)).close()
    with pytest.raises(StoreError, match="no step"):
        reference_steps(str(tmp_path / "empty"), HEADER.workflow)


def test_a_growing_run_is_read_on_like_it_is_read_whole(tmp_path: Path) -> None:
    writer = write(tmp_path / "a", range(3))
    file = tmp_path / "a" / f"steps.{writer.writer}.jsonl"
    run = open_run(tmp_path / "a")
    before = run.steps()
    whole, line = file.read_bytes(), to_json(step(3)).encode() + b"\n"
    for cut in (5, len(line) - 1, len(line)):
        file.write_bytes(whole + line[:cut])
        run = run.reread()
        again = open_run(tmp_path / "a")
        assert (run.steps(), run.problems) == (again.steps(), again.problems)
        assert all(one is other for one, other in zip(run.steps(), before, strict=False))
    file.write_bytes(whole[: len(whole) // 2])
    assert run.reread().steps() == open_run(tmp_path / "a").steps()


def test_a_resumed_run_is_read_on_with_what_it_replaced(tmp_path: Path) -> None:
    write(tmp_path / "a", range(4)).close()
    run = open_run(tmp_path / "a")
    assert len(run.steps()) == 4
    write(tmp_path / "a", range(2, 6)).close()
    run, again = run.reread(), open_run(tmp_path / "a")
    assert run.steps() == again.steps()
    assert (run.seams, run.state) == (again.seams, again.state) == ((2,), "finished")
