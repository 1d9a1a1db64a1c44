"""Probes of other distributions, in a monitor."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from roledrift import open_monitor
from roledrift.measure.installed import InstalledProbes, installed_probes
from roledrift.spans import SpanTable
from roledrift.store.reader import open_run
from roledrift.sums import Key
from roledrift.workflow import VOTING

COUNT = """
from roledrift.measure.cards import ProbeCard
from roledrift.sums import Key, Mean
class Count:
    name = "count"
    needs = frozenset({"tokens_N"})
    def __init__(self, workflow):
        pass
    def measure(self, spans):
        return {Key(name, "count.rows"): Mean(1, len(rows)) for name, rows in spans.by_role()}
CARD = ProbeCard("count", Count)
"""
POINTS = {"probes": {"count": "count_part:CARD"}}
SPANS = SpanTable(VOTING.role_names, np.array([0, 0, 1]), tokens_N=np.array([3, 5, 7]))


def watched(out: Path) -> Any:
    monitor = open_monitor(VOTING, out, notifiers=())
    monitor.observe(SPANS)
    monitor.end_step(1)
    monitor.close()
    return open_run(out).steps()[0]


def test_it_measures_beside_those_that_ship(install: Any, tmp_path: Path) -> None:
    install("count", POINTS, code={"count_part": COUNT})
    record = watched(tmp_path / "run")
    assert record.mean("generator", "count.rows") == 2.0
    assert record.mean("aggregator", "count.rows") == 1.0
    assert record.mean("generator", "length") == 4.0
    assert not record.faults


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "count"', 'name = "lengths"'),
        ("def measure", "def count"),
        ("pass", "raise OSError"),
        ("class Count", "raise OSError\nclass Count"),
        ('needs = frozenset({"tokens_N"})', "needs = 3"),
        ("CARD = ProbeCard(", "CARD = dict.fromkeys("),
    ],
)
def test_one_that_cannot_be_made_is_left_out(
    install: Any, tmp_path: Path, old: str, new: str
) -> None:
    install("count", POINTS, code={"count_part": COUNT.replace(old, new)})
    assert installed_probes(VOTING) == ()
    record = watched(tmp_path / "run")
    assert record.mean("generator", "length") == 4.0
    assert not record.faults


@pytest.mark.parametrize(
    ("old", "new"), [("count.rows", "length"), ("return {", "return 1 / 0 or {")]
)
def test_one_that_fails_in_flight_is_counted(
    install: Any, tmp_path: Path, old: str, new: str
) -> None:
    install("count", POINTS, code={"count_part": COUNT.replace(old, new)})
    record = watched(tmp_path / "run")
    assert record.mean("generator", "length") == 4.0
    assert [name.split(":")[0] for name in record.faults] == ["probe count"]


def test_of_a_log_it_measures_the_roles_that_are_known(install: Any) -> None:
    theirs = InstalledProbes()
    assert theirs.measure(SPANS, {"generator": 2}, texts=False) == []
    install("count", POINTS, code={"count_part": COUNT})
    slots = {"generator": 2, "aggregator": 1}
    (sums,) = theirs.measure(SPANS, slots, texts=False)
    assert Key("generator", "count.rows") in sums
    assert theirs.measure(SPANS, slots, texts=True) == []
    install("fails", {"probes": {"bad": "bad_part:CARD"}}, code={"bad_part": BAD})
    later = {**slots, "judge": 1}
    assert len(theirs.measure(SPANS, later, texts=False)) == 1, "the other one goes on"


BAD = """
from roledrift.measure.cards import ProbeCard
class Bad:
    name = "bad"
    needs = frozenset()
    def __init__(self, workflow):
        pass
    def measure(self, spans):
        raise RuntimeError("no")
CARD = ProbeCard("bad", Bad)
"""
