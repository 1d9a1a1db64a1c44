"""A sample of the benchmarks of 2,000 damaged inputs and 200 kills, in every run of the suite."""

import pytest

from benchmarks.hostile_input import cases
from benchmarks.killed_writer import kills


@pytest.mark.slow
def test_damaged_input_is_named_and_never_the_end() -> None:
    ran, wrong = cases(300, seed=1)
    assert (ran, wrong) == (300, [])


@pytest.mark.slow
def test_a_killed_writer_loses_at_most_the_step_being_written() -> None:
    written, _, wrong = kills(12, seed=1)
    assert written > 12
    assert wrong == []
