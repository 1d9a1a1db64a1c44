"""What needs no engine; `make test-vllm` runs the rest on the real CPU build."""

import importlib
import sys
from types import SimpleNamespace as Plain
from typing import Any

import pytest
import torch
from roledrift_vllm import (
    ServingError,
    check_requests,
    check_slots,
    logprob_temperature,
    rollout_columns,
    sampled,
)

from roledrift import RoleDriftError


def answer(ids: list[int], *, finish: str = "stop", adapter: str | None = None, **over: Any) -> Any:
    """Shaped like vLLM's ``RequestOutput`` with one completion."""
    logprobs = [{9: Plain(logprob=-5.0), token: Plain(logprob=-0.5 * token)} for token in ids]
    one = Plain(**{"token_ids": ids, "logprobs": logprobs, "finish_reason": finish} | over)
    asked = None if adapter is None else Plain(lora_name=adapter)
    return Plain(request_id="7", lora_request=asked, outputs=[one])


def engine(mode: str = "processed_logprobs", max_loras: int | None = None) -> Any:
    lora = None if max_loras is None else Plain(max_loras=max_loras)
    config = Plain(model_config=Plain(logprobs_mode=mode), lora_config=lora)
    return Plain(llm_engine=Plain(vllm_config=config))


def test_importing_it_imports_no_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.partition(".")[0] in ("roledrift_vllm", "vllm"):
            monkeypatch.delitem(sys.modules, name)
    importlib.import_module("roledrift_vllm")
    assert "vllm" not in sys.modules


def test_columns() -> None:
    rows = sampled([answer([3, 1, 0]), answer([2], finish="length", adapter="generator")])
    assert [row.adapter for row in rows] == [None, "generator"]
    columns = rollout_columns(rows, temperature=0.7)
    assert columns.token_BT.tolist() == [[3, 1, 0], [2, 0, 0]]
    assert columns.mask_BT.tolist() == [[True] * 3, [True, False, False]]
    assert columns.logp_BT.tolist() == [[-1.5, -0.5, 0.0], [-1.0, 0.0, 0.0]]
    assert columns.truncated_B.tolist() == [False, True]
    assert columns.temperature == 0.7
    assert columns.logp_BT.dtype == torch.float32


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (answer([1], finish="abort"), "ended with 'abort'"),
        (answer([1], logprobs=None), "none; sample with SamplingParams"),
        (answer([1, 2], logprobs=[{1: Plain(logprob=0.0)}]), "1 for 2 tokens"),
        (answer([1], logprobs=[{1: Plain(logprob=float("nan"))}]), "not finite"),
    ],
)
def test_outputs_without_log_probabilities(output: Any, message: str) -> None:
    with pytest.raises(RoleDriftError, match=message):
        sampled([output])


def test_no_tokens_are_no_columns() -> None:
    with pytest.raises(RoleDriftError, match="no completion with a token"):
        rollout_columns([], temperature=1.0)


def test_temperature_of_the_log_probabilities() -> None:
    params = Plain(temperature=0.7, top_p=1.0)
    assert logprob_temperature(engine(), params) == 0.7
    assert logprob_temperature(engine("raw_logprobs"), params) == 1.0
    for mode, other, message in (
        ("processed_logits", params, "reports no log-probabilities"),
        ("processed_logprobs", Plain(temperature=0.7, top_k=20), "top_k=20"),
        ("processed_logprobs", Plain(temperature=0.0), "greedy"),
    ):
        with pytest.raises(RoleDriftError, match=message):
            logprob_temperature(engine(mode), other)


def test_slots() -> None:
    check_slots(engine(max_loras=3), adapters=2)
    for loras in (None, 2):
        with pytest.raises(ServingError, match="max_loras=3 or more"):
            check_slots(engine(max_loras=loras), adapters=2)


def test_names_and_ids() -> None:
    def request(name: str, number: int) -> Any:
        return Plain(lora_name=name, lora_int_id=number)

    check_requests([None, request("a", 1), request("b", 2), request("a", 1)])
    with pytest.raises(ServingError, match="'a' is asked for with ids 1 and 2"):
        check_requests([request("a", 1), request("a", 2)])
    with pytest.raises(ServingError, match="id 1 is asked for as 'a' and 'b'"):
        check_requests([request("a", 1), request("b", 1)])
