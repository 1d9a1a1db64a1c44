import pytest

from reference_trainer.config import load
from reference_trainer.planning.episode import Spans, spans_per_iteration


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        (
            "voting-ip-healthy",  # the aggregator sees three candidates
            {"generator": Spans(24, 0.0, 24), "aggregator": Spans(8, 3.0, 8)},
        ),
        (
            "eval-opt-ip",  # three rounds: a generator sees 0, 2, 4 texts, an evaluator 1, 3, 5
            {"generator": Spans(24, 2.0, 8), "evaluator": Spans(24, 3.0, 8)},
        ),
        (
            "orch-workers-ip",  # a worker sees its strategy, the synthesizer the answers
            {
                "orchestrator": Spans(8, 0.0, 8),
                "worker": Spans(24, 1.0, 24),
                "synthesizer": Spans(8, 3.0, 8),
            },
        ),
    ],
)
def test_calls_and_quotes_are_those_of_the_workflow(
    preset: str, expected: dict[str, Spans]
) -> None:
    small = {"rollout": {"problems": 2, "copies": 4}, "rules": {"rounds": 3}}
    assert spans_per_iteration(load(preset, small)) == expected
