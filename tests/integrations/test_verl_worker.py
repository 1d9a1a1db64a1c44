"""What a worker's watch must not do to its rank. With verl's engines: tests/envs/verl/."""

from pathlib import Path

import pytest

from tests.integrations.verl_rank import measured
from tests.ranks import together

pytestmark = pytest.mark.ranks


def test_a_rank_that_cannot_measure_does_not_leave_the_others_waiting(tmp_path: Path) -> None:
    meeting = f"file://{tmp_path / 'meeting'}"
    found = together(measured, [(rank, meeting) for rank in range(2)], timeout=60)
    assert found[0] == ["not measured: some ranks cannot", {}, False, 2.0]
    assert found[1][1:] == [{"worker attach: OutOfMemoryError": 1}, False, 2.0]
    assert found[1][0].startswith("not measured")
