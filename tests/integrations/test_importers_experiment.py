import pytest
from roledrift_importers.experiment import named_after, own_set, parsed

from roledrift.ingest.form import Facts


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (
            "voting-qwen3_1.7b-multi_lora-math",
            ("voting", "1.7b", "multi_lora", "math", "isolated", ""),
        ),
        # The launcher's BASE_MODEL: other weights are another scale, not another seed.
        (
            "voting-qwen3_1.7b_s430-multi_lora-math",
            ("voting", "1.7b_s430", "multi_lora", "math", "isolated", ""),
        ),
        (
            "orchestrator_workers_propose-qwen3_4b-share_policy-deepcoder-rerun2",
            ("orch_workers", "4b", "share_policy", "deepcoder", "shared", ""),
        ),
        (
            "evaluator_optimizer-qwen3_0.6b-base_model-math",
            ("eval_opt", "0.6b", "base_model", "math", "shared", ""),
        ),
        (
            "orchestrator_workers_propose-qwen3_1.7b-single_agent_generator_transfer-math",
            ("orch_workers", "1.7b", "single_agent_generator_transfer", "math", "shared", "worker"),
        ),
        (
            "voting-qwen3_1.7b-single_agent_transfer-deepcoder_primeintellect",
            ("voting", "1.7b", "single_agent_transfer", "deepcoder", "shared", "all roles"),
        ),
        (
            "single_agent-qwen3_0.6b-share_policy-math",
            ("single", "0.6b", "share_policy", "math", "shared", ""),
        ),
        ("evaluator_optimizer-qwen3_0.6b-math", ("eval_opt", "0.6b", "", "math", None, "")),
    ],
)
def test_the_parts_of_a_name(name: str, parts: tuple[object, ...]) -> None:
    found = parsed(name)
    assert found is not None
    assert (
        found.workflow, found.scale, found.kind, found.task, found.routing, found.transfer,
    ) == parts  # fmt: skip


@pytest.mark.parametrize("name", ["dapo_math", "step_10", "my-run_2b-x", "", "voting"])
def test_other_names_say_nothing(name: str) -> None:
    assert parsed(name) is None
    assert not named_after(name, Facts())


def test_what_is_no_training_is_noted() -> None:
    base, transfer, seeded = Facts(), Facts(), Facts()
    named_after("voting-qwen3_1.7b-base_model-math", base)
    named_after("voting-qwen3_1.7b-single_agent_generator_transfer-math", transfer)
    named_after("voting-qwen3_1.7b-share_policy-math-seed3", seeded)
    assert "base model" in base.notes
    assert transfer.notes["transfer"] == "generator"
    assert (seeded.seed, seeded.notes) == (3, {"suffix": "seed3"})


def test_the_problems_of_a_task() -> None:
    assert own_set("math", "dapo_math")
    assert own_set("deepcoder", "deepcoder_primeintellect")
    assert not own_set("math", "aime2025")
