import pytest

from reference_trainer.episodes import Parse
from reference_trainer.tasks import Grade
from reference_trainer.workflows.parse import parse_answer, parse_selection


@pytest.mark.parametrize(
    ("text", "how", "value"),
    [
        (" \\boxed{ 2 }", "tag", "2"),
        (" \\BOXED{3}", "tag", "3"),
        (" \\boxed{ 1 } then \\boxed{ 2 }", "tag", "1"),  # the first box counts
        (" \\boxed{ 7 } so 2", "failed", None),  # the first lone digit is the 7
        (" the answer is 3", "fallback", "3"),
        (" 9 - 4", "failed", None),  # the first digit is out of range
        (" \\boxed{ 0 }", "failed", None),
        (" candidate12 wins", "failed", None),
        ("", "failed", None),
    ],
)
def test_selection(text: str, how: str, value: str | None) -> None:
    assert parse_selection(text, candidates=3) == Parse(how, value)  # type: ignore[arg-type]


def test_answer() -> None:
    assert parse_answer(Grade(True, "5")) == Parse("tag", "5")
    assert parse_answer(Grade(False, None)) == Parse("failed", None)
