import tempfile

import pytest

from roledrift.ingest import spool
from roledrift.records import Sample, Stat, StepRecord


def step(number: int, *, text: str = "") -> spool.Step:
    groups = {"*": {"reward": Stat(1, 0.1 * number), "length": Stat(1, 100.0)}}
    samples = [Sample(number, "solver", text)] if text else []
    return StepRecord(number, groups=groups), samples


@pytest.mark.parametrize("most", [0, 5, 1000])
@pytest.mark.parametrize("with_texts", [set(), {0}, {3, 4}, {9}])
def test_steps_come_back_as_they_were_and_in_order(
    monkeypatch: pytest.MonkeyPatch, most: int, with_texts: set[int]
) -> None:
    monkeypatch.setattr(spool, "_MOST", most)
    steps = [step(n, text="why" if n in with_texts else "") for n in range(10)]
    with tempfile.TemporaryFile() as file:
        kept = spool.Spool(file)
        for one in steps:
            kept.add(one)
        assert [(r, [s.text for s in its]) for r, its in kept] == [
            (r, [s.text for s in its]) for r, its in steps
        ]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_MOST", 4)
    with tempfile.TemporaryFile() as file:
        kept = spool.Spool(file)
        for n in range(10):
            kept.add(step(n))
        assert file.tell() > 0
        first, *_, last = kept
        assert (first[0].step, last[0].step) == (0, 9)
