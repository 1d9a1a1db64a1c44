"""Ways in which vLLM serves other weights than asked for, and the checks that notice."""

from pathlib import Path
from typing import Any

import pytest
import torch
from roledrift_vllm import (
    ServingError,
    check_prefix_cache,
    check_requests,
    check_served,
    check_slots,
    logprob_temperature,
    rollout_columns,
    sampled,
)
from roledrift_vllm.checks import next_logps
from vllm import LLM, SamplingParams
from vllm.lora.request import LoRARequest

from reference_trainer.model import ModelSettings, load_model
from reference_trainer.policies import AdamSettings, AdapterBank, LoraSettings
from roledrift import RoleBatch, RoleDriftError, TokenCapture, Workflow
from tests.envs.vllm.test_engine import shake

PARAMS = SamplingParams(temperature=0.7, max_tokens=6, logprobs=0, seed=1, detokenize=False)
LONG = [5 + place % 90 for place in range(100)]
SHORT = LONG[:9]


@pytest.fixture(scope="module")
def bank(folder: Path) -> AdapterBank:
    base, _ = load_model(folder, ModelSettings(path=str(folder)))
    bank = AdapterBank(
        base, ("a", "b"), lora=LoraSettings(rank=4), adam=AdamSettings(), seed=0, lr_factors=None
    )
    shake(bank, 1)
    return bank


@pytest.fixture(scope="module")
def llm(folder: Path) -> Any:
    """As many slots as adapters: one too few."""
    return LLM(
        model=str(folder),
        skip_tokenizer_init=True,
        dtype="float32",
        max_model_len=256,
        max_num_seqs=16,
        block_size=32,
        enforce_eager=True,
        enable_lora=True,
        max_loras=2,
        max_lora_rank=8,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",
    )


@torch.no_grad()
def own(bank: AdapterBank, policy: str | None, prompt: list[int] = SHORT) -> list[float]:
    """The trainer's log-probabilities of the token after ``prompt``, at temperature .7."""
    if policy is not None:
        bank.activate(policy)
        logits = bank.causal_lm(input_ids=torch.tensor([prompt])).logits[0, -1]
    else:
        with bank.without_adapters():
            logits = bank.causal_lm(input_ids=torch.tensor([prompt])).logits[0, -1]
    return list((logits.float() / 0.7).log_softmax(-1).tolist())


def save(bank: AdapterBank, folder: Path) -> dict[str, LoRARequest]:
    bank.save(folder)
    return {name: LoRARequest(name, i, str(folder / name)) for i, name in enumerate("ab", start=1)}


def test_served(llm: Any, bank: AdapterBank, tmp_path: Path) -> None:
    requests = save(bank, tmp_path)
    assert logprob_temperature(llm, PARAMS) == 0.7
    expected = {"a": own(bank, "a"), "b": own(bank, "b"), "base": own(bank, None)}
    check_served(llm, PARAMS, prompt=SHORT, requests=requests, expected=expected)
    swapped = {"a": requests["b"], "b": requests["a"]}
    with pytest.raises(ServingError, match=r"does not serve 'a'.*they are those of 'b'"):
        check_served(llm, PARAMS, prompt=SHORT, requests=swapped, expected=expected)
    with pytest.raises(ServingError, match="they are those of 'base'"):
        check_served(llm, PARAMS, prompt=SHORT, requests={"a": None}, expected=expected)


def test_a_reload_from_the_same_path_leaves_the_prefix_cache_stale(
    llm: Any, bank: AdapterBank, tmp_path: Path
) -> None:
    request = save(bank, tmp_path / "one")["a"]
    llm.llm_engine.add_lora(LoRARequest("a", 1, request.lora_path, load_inplace=True))
    check_prefix_cache(llm, PARAMS, prompt=LONG, request=request)
    shake(bank, 2)
    save(bank, tmp_path / "two")
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        (tmp_path / "two" / "a" / name).replace(tmp_path / "one" / "a" / name)
    llm.llm_engine.add_lora(LoRARequest("a", 1, request.lora_path, load_inplace=True))
    with pytest.raises(ServingError, match="adapter 'a' answers from a stale prefix cache"):
        check_prefix_cache(llm, PARAMS, prompt=LONG, request=request)
    llm.reset_prefix_cache()
    check_prefix_cache(llm, PARAMS, prompt=LONG, request=request)
    expected = {"a": own(bank, "a", LONG)}
    check_served(llm, PARAMS, prompt=LONG, requests={"a": request}, expected=expected)
    with pytest.raises(ServingError, match="only whole blocks of 32 are cached"):
        check_prefix_cache(llm, PARAMS, prompt=SHORT, request=request)


def test_a_reload_in_place_from_a_new_path_is_fresh(
    llm: Any, bank: AdapterBank, tmp_path: Path
) -> None:
    for version in (3, 4):
        shake(bank, version)
        request = save(bank, tmp_path / str(version))["a"]
        llm.llm_engine.add_lora(LoRARequest("a", 1, request.lora_path, load_inplace=True))
        expected = {"a": own(bank, "a", LONG)}
        check_served(llm, PARAMS, prompt=LONG, requests={"a": request}, expected=expected)


def test_base_rows_get_the_last_slot(llm: Any, bank: AdapterBank, tmp_path: Path) -> None:
    """The CPU kernels find a row's weights at slot -1 if it has no adapter: the last one."""
    requests = save(bank, tmp_path)
    for request in requests.values():
        again = LoRARequest(
            request.lora_name, request.lora_int_id, request.lora_path, load_inplace=True
        )
        llm.llm_engine.add_lora(again)
    expected = own(bank, None)
    mixed = [None, requests["a"], None, requests["b"]] * 2
    answers = llm.generate(
        [{"prompt_token_ids": SHORT}] * len(mixed), PARAMS, lora_request=mixed, use_tqdm=False
    )
    off = [
        abs(row.logps[0] - expected[row.token_ids[0]])
        for row in sampled(answers)
        if row.adapter is None
    ]
    assert max(off) > 0.1
    alone = next_logps(llm, PARAMS, prompt=SHORT, request=None)
    assert max(abs(logp - expected[token]) for token, logp in alone.items()) < 1e-4
    with pytest.raises(ServingError, match=r"2 adapters and max_loras=2: .* max_loras=3 or more"):
        check_slots(llm, adapters=2)
    check_slots(llm, adapters=1)


def test_outputs_become_a_batch(llm: Any, bank: AdapterBank, tmp_path: Path) -> None:
    requests = save(bank, tmp_path / "batch")
    llm.llm_engine.add_lora(LoRARequest("b", 2, requests["b"].lora_path, load_inplace=True))
    outputs = llm.generate(
        [{"prompt_token_ids": SHORT}] * 3, PARAMS, lora_request=requests["b"], use_tqdm=False
    )
    rollout = rollout_columns(sampled(outputs), temperature=logprob_temperature(llm, PARAMS))
    sequences = torch.cat([torch.tensor([SHORT] * 3), rollout.token_BT], dim=1)
    bank.activate("b")
    with torch.no_grad():
        logits = bank.causal_lm(input_ids=sequences).logits[:, len(SHORT) - 1 : -1]
    logp = (logits / 0.7).log_softmax(-1).gather(-1, rollout.token_BT[..., None])[..., 0]
    workflow = Workflow.of("single")
    capture = TokenCapture(workflow)
    capture.add(
        RoleBatch.from_padded(
            workflow,
            role=list(workflow.role_names) * 3,
            mask=rollout.mask_BT,
            logp=logp,
            rollout_logp=rollout.logp_BT,
            truncated=rollout.truncated_B,
            temperature=0.7,
            rollout_temperature=rollout.temperature,
        )
    )
    (table,) = capture.drain()
    (comparison,) = table.comparisons
    assert comparison.comparable
    assert float((logp - rollout.logp_BT)[rollout.mask_BT].abs().max()) < 1e-4


def test_raw_log_probs_are_named_by_their_temperature(llm: Any) -> None:
    with pytest.raises(RoleDriftError, match=r"top_p=0.9"):
        logprob_temperature(llm, SamplingParams(temperature=0.7, top_p=0.9))
    with pytest.raises(RoleDriftError, match="greedy"):
        logprob_temperature(llm, SamplingParams(temperature=0.0))


def test_two_ids_under_one_name_end_the_engine(llm: Any, bank: AdapterBank, tmp_path: Path) -> None:
    """The last test of this engine: it does not survive."""
    path = str(tmp_path / "b")
    bank.save(tmp_path)
    twins = [LoRARequest("b", 7, path), LoRARequest("b", 8, path)]
    with pytest.raises(ServingError, match="'b' is asked for with ids 7 and 8"):
        check_requests(twins)
    with pytest.raises(KeyError):
        llm.generate([{"prompt_token_ids": SHORT}] * 2, PARAMS, lora_request=twins, use_tqdm=False)
