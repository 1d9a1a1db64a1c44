"""Two processes stop at the same step, although only one of them sees why."""

from __future__ import annotations

from pathlib import Path

import pytest

from roledrift.store.reader import open_run
from tests.monitor.stop_rank import trained
from tests.ranks import together

pytestmark = pytest.mark.ranks


def test_both_ranks_stop_where_rank_0_decides(tmp_path: Path) -> None:
    first, second = together(trained, [(rank, str(tmp_path)) for rank in range(2)])
    assert first["stopped"] is not None
    assert first["stopped"] == second["stopped"]
    assert (first["alerts"], second["alerts"]) == (1, 0), "only rank 0 judges"
    assert first["weight"] == second["weight"] == 3.0 * (first["stopped"] + 1)
    run = open_run(tmp_path / "run")
    assert [alert.step for alert in run.alerts()] == [first["stopped"]]
    assert len(run.segments) == 1, "and only rank 0 writes"
