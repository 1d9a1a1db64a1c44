"""Rows in verl's layout, from plain dictionaries of tensors. The real classes: tests/envs/verl/."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from roledrift_verl.batch import (
    Rows,
    Sampling,
    from_data_proto,
    from_queue,
    prompt_name,
    role_batch,
    samples,
    speakers,
    truncated,
)
from roledrift_verl.settings import settings_of
from roledrift_verl.watch import sampling_of

from roledrift import VOTING, TextSampler, TokenCapture
from roledrift.config import SamplingConfig, from_mapping
from roledrift.errors import ConfigError
from roledrift.ingest.roles import RoleMap

MASK = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])


def decode(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def padded(**columns: list[Any]) -> SimpleNamespace:
    """Three rows: prompts padded on the left, responses on the right."""
    prompt = torch.tensor([[0, 5, 6], [4, 5, 6], [0, 0, 6]])
    return SimpleNamespace(
        batch={
            "prompts": prompt,
            "responses": torch.tensor([[7, 8, 9], [7, 1, 0], [1, 0, 0]]),
            "response_mask": MASK,
            "attention_mask": torch.cat([(prompt > 0).long(), MASK], 1),
            "old_log_probs": torch.full((3, 3), -0.5),
            "rollout_log_probs": torch.full((3, 3), -0.75),
            "token_level_scores": torch.tensor([[0, 0, 1.0], [0, 1.0, 0], [0, 0, 0]]),
            "advantages": torch.tensor([1.0, 1.0, -2.0])[:, None] * MASK,
        },
        non_tensor_batch={"uid": ["a", "a", "b"], **columns},
    )


def ragged() -> dict[str, Any]:
    def nested(*rows: list[float]) -> torch.Tensor:
        tensors = [torch.tensor(row) for row in rows]
        return torch.nested.as_nested_tensor(tensors, layout=torch.jagged)

    return {
        "prompts": nested([5, 6], [4, 5, 6], [6]),
        "responses": nested([7, 8, 9], [7, 1], [1]),
        "response_mask": nested([1, 1, 1], [1, 1], [1]),
        "rm_scores": nested([0.0, 0.0, 1.0], [0.0, 1.0], [0.0]),
        "extra_fields": [{"role": "generator0"}, {"role": "aggregator", "turn": 1}, {}],
    }


def spans(rows: Rows, how: Sampling) -> Any:
    capture = TokenCapture(VOTING)
    capture.add(role_batch(VOTING, rows, speakers(rows, RoleMap(), decode), how=how))
    return capture.drain()[0], capture.faults()


def test_padding_on_both_sides_is_left_out() -> None:
    rows = from_data_proto(padded(role=["generator", "generator", "aggregator"], slot=[0, 1, 0]))
    assert rows.prompts == ([5, 6], [4, 5, 6], [6])
    assert rows.responses == ([7, 8, 9], [7, 1], [1])
    table, faults = spans(rows, Sampling(0.7, 0.7, longest=3, ends=frozenset([1])))
    assert faults == {}
    assert table.tokens_N.tolist() == [3, 2, 1]
    assert table.reward_N.tolist() == [1.0, 1.0, 0.0]
    assert table.advantage_N.tolist() == [1.0, 1.0, -2.0]
    assert table.truncated_N.tolist() == [True, False, False]
    assert table.slot_N.tolist() == [0, 1, 0]
    assert table.prompt_N.tolist() == [0, 0, 1]
    assert table.nll_N.tolist() == [1.5, 1.0, 0.5]
    (rollout,) = table.comparisons
    # d = old - rollout = 0.25 at every token: expm1(0.5) each, by hand 0.6487212707
    assert rollout.chi2_N.tolist() == pytest.approx(
        [3 * 0.6487212707, 2 * 0.6487212707, 0.6487212707]
    )
    assert (rollout.temperature_a, rollout.temperature_b, rollout.steps_between) == (0.7, 0.7, 0)


def test_a_slot_that_nobody_says_is_not_slot_0() -> None:
    rows = from_data_proto(padded(role=["generator", "generator", "aggregator"]))
    assert spans(rows, Sampling())[0].slot_N is None


def test_rows_that_fill_up_a_batch_are_no_rows() -> None:
    there = padded(group_roles=["generator"] * 3, is_pad_step=[False, True, False])
    assert from_data_proto(there).prompts == ([5, 6], [6])


def test_the_queue_marks_padding_in_its_tags() -> None:
    rows = from_queue(ragged(), ["a_0_0", "a_0_1", "b_1_0"], [{}, {"is_padding": True}, {}])
    assert rows.responses == ([7, 8, 9], [1])
    assert rows.index == (0, 0)
    assert [one["episode"] for one in rows.named] == ["a_0", "b_1"]
    assert [one["uid"] for one in rows.named] == ["a", "b"]


def test_names_end_in_the_slot_and_nobody_is_unknown() -> None:
    rows = from_queue(ragged(), ["a_0_0", "a_0_1", "b_1_0"], [{}, {}, {}])
    assert speakers(rows, RoleMap(), decode) == [("generator", 0), ("aggregator", None), ("", None)]
    table, faults = spans(rows, Sampling())
    assert len(table) == 2
    assert faults == {"unknown role": 1}
    assert table.advantage_N is None


def test_numbers_only_name_what_a_rule_names() -> None:
    rows = from_queue(ragged(), ["a_0_0", "a_0_1", "b_1_7"], [{}, {}, {}])
    by_number = speakers(rows, RoleMap("7=generator:2"), decode)
    assert by_number[2] == ("generator", 2)
    by_prompt = speakers(rows, RoleMap("~^6$=aggregator"), decode)
    assert by_prompt[2] == ("aggregator", None)


def test_prompts_have_stable_names() -> None:
    assert prompt_name([1, 2, 3]) == "e2e2033ae7e1"
    assert prompt_name([1, 2, 3]) != prompt_name([1, 23])


def test_an_end_of_text_at_the_limit_is_no_truncation() -> None:
    rows = from_data_proto(padded(role=["generator"] * 3))
    assert truncated(rows, Sampling(longest=2, ends=frozenset([1]))) == [True, False, False]


def test_the_texts_that_are_kept() -> None:
    rows = from_data_proto(padded(role=["generator", "generator", "aggregator"]))
    who = speakers(rows, RoleMap(), decode)
    kept = samples(
        VOTING,
        rows,
        who,
        how=Sampling(longest=3),
        step=4,
        sampler=TextSampler(SamplingConfig(per_role=9, canaries=0)),
        decode=decode,
    )
    assert [one.text for one in kept] == ["7 8 9", "7 1", "1"]
    assert [one.reward for one in kept] == [1.0, 1.0, 0.0]
    assert [one.advantage for one in kept] == [1.0, 1.0, -2.0]
    assert [one.finish for one in kept] == ["length", "stop", "stop"]


def test_settings_come_from_the_section_then_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert settings_of({}) is None
    assert settings_of({"roledrift": {"out": "runs/x"}}) is None
    monkeypatch.setenv("ROLEDRIFT_WORKFLOW", "voting")
    monkeypatch.setenv("ROLEDRIFT_OUT", "runs/env")
    settings = settings_of({"roledrift": {"out": "runs/x"}})
    assert settings is not None
    assert (settings.workflow, settings.out) == ("voting", "runs/x")
    with pytest.raises(ConfigError, match=r"roledrift\.workflov.*did you mean 'workflow'"):
        settings_of({"roledrift": {"workflov": "voting"}})
    with pytest.raises(ConfigError, match="needs a section"):
        settings_of({"roledrift": "voting"})


def test_the_example_is_a_configuration() -> None:
    file = Path(__file__).parents[2] / "examples" / "verl_config.yaml"
    settings = settings_of(yaml.safe_load(file.read_text()))
    assert settings is not None
    assert (settings.workflow, settings.out) == ("voting", "runs/verl-voting")
    assert isinstance(settings.config, dict)
    assert from_mapping(settings.config).stop_on == ("length_inflation",)


class Section(dict[str, Any]):
    """Attributes and get(), as OmegaConf's sections."""

    __getattr__ = dict.__getitem__


@pytest.mark.parametrize(
    ("rollout", "engine"),
    [
        ({"name": "vllm", "logprobs_mode": "processed_logprobs"}, 0.7),
        ({"name": "vllm"}, 1.0),
        ({"name": "sglang"}, None),
    ],
)
def test_at_which_temperature_the_engine_reports(
    rollout: dict[str, Any], engine: float | None
) -> None:
    config = Section(
        actor_rollout_ref=Section(rollout=Section(temperature=0.7, **rollout)),
        algorithm=Section(rollout_correction=Section(bypass_mode=True)),
        trainer=Section(v1=Section(trainer_mode="separate_async")),
        data=Section(max_response_length=64),
    )
    tokenizer = SimpleNamespace(eos_token_id=2, pad_token_id=None)
    how = sampling_of(SimpleNamespace(config=config, tokenizer=tokenizer))
    assert how == Sampling(0.7, engine, 64, frozenset([2]), bypass=True, on_policy=False)
