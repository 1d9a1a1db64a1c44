"""What a run is called in the end."""

from __future__ import annotations

import pytest

from roledrift.detect.conclusion import conclude
from roledrift.judgement import Verdict
from tests.detect.stories import MOVED, closed_alert, make_alert, story_of


def _verdicts(reached: int, missing: int, odd: int = 0) -> list[Verdict]:
    return [
        *(Verdict("d", f"r{i}", "ok") for i in range(reached)),
        *(Verdict("d", f"m{i}", "no verdict", needs=("lengths",)) for i in range(missing)),
        *(Verdict("d", f"n{i}", "no verdict", reason="does not apply: x") for i in range(odd)),
    ]


@pytest.mark.parametrize(
    ("reached", "missing", "odd", "outcome"),
    [(4, 0, 0, "clean"), (2, 2, 9, "clean"), (1, 2, 0, "no verdict"), (0, 0, 3, "no verdict"),
     (0, 0, 0, "no verdict")],
)  # fmt: skip
def test_less_than_half_of_the_verdicts_is_none(
    reached: int, missing: int, odd: int, outcome: str
) -> None:
    found = conclude(_verdicts(reached, missing, odd), (), 30)
    assert (found.outcome, found.reached, found.applicable) == (outcome, reached, reached + missing)
    assert found.needs == (("lengths",) if missing else ())
    assert ("Not measured: lengths." in found.sentence) == (outcome == "no verdict" and missing > 0)


def test_no_step_is_no_verdict() -> None:
    found = conclude(_verdicts(4, 0), (), 0)
    assert (found.outcome, found.sentence) == ("no verdict", "No step was recorded.")


def test_an_open_incident_is_the_outcome_and_one_that_has_passed_is_suspicious() -> None:
    (one,) = story_of(MOVED)
    found = conclude(_verdicts(0, 4), (one,), 30)
    assert (found.outcome, found.sentence, found.incident) == ("failing", one.sentence, one)
    (passed,) = story_of(MOVED, closed_alert(MOVED, 30))
    assert conclude(_verdicts(4, 0), (passed,), 30).outcome == "suspicious"
    (input_,) = story_of(make_alert("engine_mismatch", "a", 3, severity="input problem"))
    assert conclude(_verdicts(4, 0), (input_,), 30).outcome == "input problem"
