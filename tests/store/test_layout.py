import os
from pathlib import Path

import pytest

from roledrift.errors import StoreError
from roledrift.store import layout


def test_writer_names_are_file_safe_and_carry_the_process() -> None:
    name = layout.writer_name()
    assert layout.safe_name(name) == name
    assert f"-{os.getpid()}-" in name


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("trainer", "trainer"),
        ("a/../b", "a-b"),
        ("x.jsonl", "x-jsonl"),
        ("", "writer"),
        ("é", "writer"),
    ],
)
def test_safe_name(given: str, safe: str) -> None:
    assert layout.safe_name(given) == safe


@pytest.mark.parametrize("step", [0, 7, 123_456_789, -1])
def test_a_samples_file_names_its_step_and_writer(step: int) -> None:
    name = layout.samples_file(step, "host-12-99")
    assert name.startswith("samples/")
    assert layout.sample_owner(name.removeprefix("samples/")) == (step, "host-12-99")


def test_other_files_are_nobodys() -> None:
    assert layout.sample_owner(".00000001-w.parquet.tmp") is None
    assert layout.writers(
        ["run.json", "steps.a.jsonl", "alerts.b.jsonl", "steps.jsonl"], "steps"
    ) == ["a"]


@pytest.mark.parametrize("path", ["runs/a", "/runs/a", "C:/runs", "C:\\runs"])
def test_a_path_of_this_machine_is_no_url(path: str) -> None:
    layout.refuse_url(path)


@pytest.mark.parametrize("path", ["s3://bucket/a", Path("s3://bucket/a")])
def test_a_url_is_refused(path: Path | str) -> None:
    with pytest.raises(StoreError, match="copy the runs"):
        layout.refuse_url(path)
