from __future__ import annotations

from roledrift.report.model import Prose
from roledrift.report.sections import outcome
from roledrift.report.view import View


def test_best_is_the_first_highest() -> None:
    assert outcome.best({0: 0.1, 5: 0.7, 10: 0.7}) == (5, 0.7)
    assert outcome.best({}) is None


def test_a_drop_is_below_half_of_the_best_so_far() -> None:
    assert outcome.first_drop({0: 0.2, 5: 0.6, 10: 0.31, 15: 0.29}) == (15, 0.6, 0.29)
    assert outcome.first_drop({0: 0.6, 5: 0.31}) is None
    assert outcome.first_drop({0: 0.0, 5: 0.0}) is None


def test_the_wording_is_order_in_time_and_never_cause(failing: View) -> None:
    lead = outcome.build(failing).blocks[0]
    assert isinstance(lead, Prose)
    assert "Best validation accuracy 0.6 at step 0" in lead.text
    assert "came after the best validation" in lead.text
    assert "caus" not in lead.text


def test_absent_outcomes_are_notes(empty: View) -> None:
    assert [block.kind for block in outcome.build(empty).blocks] == ["note", "note"]
