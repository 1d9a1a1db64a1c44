from __future__ import annotations

from roledrift_paper.step_table import ROWS, step_table


def test_a_long_table_is_thinned_and_says_so() -> None:
    long = step_table({"a": dict.fromkeys(range(300), 1.0)})
    steps = [row[0].text for row in long.rows]
    assert (len(steps), steps[0], steps[-1]) == (ROWS, "0", "299")
    assert f"{ROWS} of 300 steps" in long.caption


def test_a_step_that_a_curve_lacks_is_a_dash() -> None:
    short = step_table({"a": {0: 1.0}, "b": {5: 2.0}})
    assert [[cell.text for cell in row] for row in short.rows] == [["0", "1", "–"], ["5", "–", "2"]]
    assert short.caption == ""
    assert step_table({}).rows == ()
