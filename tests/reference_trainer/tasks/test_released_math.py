import pytest

from reference_trainer.tasks.math_answers import Verifier
from reference_trainer.tasks.released_math import grade_released_math, released_box
from tests.reference_trainer.recorded import FACTS


def test_rewards_are_those_of_the_papers_code() -> None:
    other = {
        (fact["text"], fact["truth"])
        for fact in FACTS["math"]
        if grade_released_math(fact["text"], fact["truth"]).correct != (fact["reward"] == 1.0)
    }
    assert len(FACTS["math"]) > 100
    assert other == set()


def test_the_box() -> None:
    assert released_box("\\boxed{a\\{b} and \\boxed{5") is None
    assert released_box("\\boxed{\\frac{1}{2}} then") == "\\frac{1}{2}"
    assert released_box("none") is None


def test_what_sympy_would_never_end_is_wrong_in_time() -> None:
    verifier = Verifier(0.5, rules="prm800k")
    try:
        assert not grade_released_math("\\boxed{9**9**9**9}", "0.5", verifier=verifier).correct
        assert grade_released_math("\\boxed{\\frac12}", "0.5", verifier=verifier).correct
    finally:
        verifier.close()


@pytest.mark.parametrize("text", ["\\boxed{__import__('os')}", "\\boxed{" * 2000, "\\boxed{}"])
def test_hostile_texts_are_wrong(text: str) -> None:
    assert not grade_released_math(text, "5").correct
