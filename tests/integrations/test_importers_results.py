from pathlib import Path
from typing import Any

from roledrift_importers.results import Accuracies, accuracies, experiments, results

from roledrift.ingest.ledger import Ledger
from tests.ingest.logs import write_lines
from tests.ingest.trees import result

NAME = "voting-qwen3_1.7b-multi_lora-math"
BASE = "voting-qwen3_1.7b-base_model-math"


def row(step: int, accuracy: float, name: str = NAME, **more: Any) -> dict[str, Any]:
    return result(name, step, accuracy, **more)


def found(tmp_path: Path, *rows: dict[str, Any], name: str = NAME) -> Accuracies:
    known = results(write_lines(tmp_path / "eval_results.jsonl", rows), Ledger())
    its = accuracies(known, name, "dapo_math", Ledger())
    assert its is not None
    return its


def test_the_base_model_is_no_step_of_the_training(tmp_path: Path) -> None:
    its = found(tmp_path, row(10, 0.5), row(0, 0.3, BASE), row(0, 0.9, BASE, dataset="aime2025"))
    assert (its.by_step, its.base) == ({10: 0.5}, 0.3)


def test_lengths_are_not_mixed(tmp_path: Path) -> None:
    """Responses may be longer in an evaluation than they could be in training."""
    its = found(tmp_path, row(10, 0.5), row(20, 0.9, length_mode="eval"), row(0, 0.3, BASE))
    assert (its.by_step, its.base, its.lengths) == ({10: 0.5}, 0.3, "training")
    longer = found(tmp_path, row(10, 0.5, length_mode="eval"), row(0, 0.3, BASE))
    assert (longer.by_step, longer.base, longer.lengths) == ({10: 0.5}, None, "eval")


def test_most_rollouts_count_then_the_last_row(tmp_path: Path) -> None:
    its = found(tmp_path, row(10, 0.5, n_rollouts=4), row(10, 0.2), row(20, 0.1), row(20, 0.4))
    assert its.by_step == {10: 0.5, 20: 0.4}


def test_a_transfer_keeps_its_accuracy(tmp_path: Path) -> None:
    name = "voting-qwen3_1.7b-single_agent_generator_transfer-math"
    mode = {"eval_mode": "single_agent_generator_transfer"}
    its = found(tmp_path, row(0, 0.6, name, **mode), row(0, 0.3, BASE), name=name)
    assert (its.by_step, its.base) == ({0: 0.6}, None)


def test_odd_rows_are_counted(tmp_path: Path) -> None:
    ledger = Ledger()
    file = write_lines(tmp_path / "r.jsonl", [row(10, 0.5), {"accuracy": 1}, row(10, 0.1, "x")])
    known = results(file, ledger)
    assert experiments(known) == [(NAME, "dapo_math"), ("x", "dapo_math")]
    assert ledger.counts == {"result without step or accuracy": 1}
    assert accuracies(known, "y", "dapo_math", ledger) is None
