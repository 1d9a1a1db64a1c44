"""Rows of verl's own batches, against verl's own statistics of the same rows."""

import math

import numpy as np
import pytest
import torch
from roledrift_verl.batch import (
    Rows,
    Sampling,
    from_data_proto,
    from_queue,
    role_batch,
    speakers,
)
from verl import DataProto
from verl.trainer.ppo.core_algos import agg_loss
from verl.trainer.ppo.metric_utils import compute_data_metrics
from verl.trainer.ppo.ray_trainer import AdvantageEstimator, compute_advantage
from verl.trainer.ppo.rollout_corr_helper import compute_offpolicy_metrics
from verl.utils import tensordict_utils as tu

from roledrift import VOTING, TokenCapture
from roledrift.ingest.roles import RoleMap
from roledrift.measure.catalogue import probes_for
from roledrift.records import summarise
from roledrift.spans import SpanTable
from roledrift.sums import add

HOW = Sampling(temperature=0.7, rollout_temperature=0.7, longest=9)


def decode(ids: list[int]) -> str:
    return " ".join(map(str, ids))


def table_of(rows: Rows, how: Sampling = HOW) -> SpanTable:
    capture = TokenCapture(VOTING)
    capture.add(role_batch(VOTING, rows, speakers(rows, RoleMap(), decode), how=how))
    (table,) = capture.drain()
    return table


def statistics(table: SpanTable):  # type: ignore[no-untyped-def]
    probes = [one for one in probes_for("economy", VOTING) if not one.needs - table.present]
    return summarise(add([one.measure(table) for one in probes]))


def advantaged(batch: DataProto) -> DataProto:
    return compute_advantage(batch, adv_estimator=AdvantageEstimator.GRPO, num_repeat=4)


def queued(batch: DataProto) -> tuple[object, list[str], list[dict[str, object]]]:
    """The same rows as the V1 trainer keeps them: ragged, named by key, with a padding row."""
    length = batch.batch["response_mask"].sum(1)
    columns = {
        name: torch.nested.as_nested_tensor(
            [row[:n] for row, n in zip(batch.batch[name], length, strict=True)],
            layout=torch.jagged,
        )
        for name in batch.batch.keys()  # noqa: SIM118 - a TensorDict iterates over its rows
        if name not in ("prompts", "attention_mask", "token_level_scores", "token_level_rewards")
    }
    columns["rm_scores"] = torch.nested.as_nested_tensor(
        [row[:n] for row, n in zip(batch.batch["token_level_scores"], length, strict=True)],
        layout=torch.jagged,
    )
    columns["prompts"] = torch.nested.as_nested_tensor(
        [row[row != 0] for row in batch.batch["prompts"]], layout=torch.jagged
    )
    named = [
        {"role": role, "slot": slot, "min_global_steps": 3}
        for role, slot in zip(
            batch.non_tensor_batch["role"], batch.non_tensor_batch["slot"], strict=True
        )
    ]
    uids = batch.non_tensor_batch["uid"].tolist()
    keys = [f"{uid}_{row % 16 // 4}_{row % 4}" for row, uid in enumerate(uids)]
    tags: list[dict[str, object]] = [{"is_padding": row == 5} for row in range(len(keys))]
    return tu.get_tensordict({**columns, "extra_fields": named, "uid": uids}), keys, tags


def only(batch: DataProto, role: str) -> DataProto:
    return batch.select_idxs(batch.non_tensor_batch["role"] == role)


@pytest.mark.parametrize("role", ["generator", "aggregator"])
def test_a_role_is_what_verl_says_of_its_rows_alone(batch: DataProto, role: str) -> None:
    found = statistics(table_of(from_data_proto(advantaged(batch))))[role]
    mine = only(batch, role)
    theirs = compute_offpolicy_metrics(
        mine.batch["old_log_probs"], mine.batch["rollout_log_probs"], mine.batch["response_mask"]
    )
    assert found["rollout.chi2"].mean == pytest.approx(theirs["chi2_token"], rel=1e-5)
    assert found["rollout.k3"].mean == pytest.approx(theirs["k3_kl"], rel=1e-5)
    assert found["ppl"].mean == pytest.approx(theirs["training_ppl"], rel=1e-6)
    logged = compute_data_metrics(mine, use_critic=False)
    assert found["length"].mean == pytest.approx(logged["response_length/mean"])
    assert found["reward"].mean == pytest.approx(logged["critic/score/mean"])


def test_all_roles_together_are_verls_statistics(batch: DataProto) -> None:
    table = table_of(from_data_proto(advantaged(batch)))
    theirs = compute_offpolicy_metrics(
        *(batch.batch[name] for name in ("old_log_probs", "rollout_log_probs", "response_mask"))
    )
    (rollout,) = (one for one in table.comparisons if one.kind == "rollout")
    pooled = rollout.chi2_N.sum() / rollout.tokens_N.sum()
    assert pooled == pytest.approx(theirs["chi2_token"], rel=1e-5)
    ppl = np.exp(table.nll_N / table.tokens_N).mean()
    assert ppl == pytest.approx(theirs["training_ppl"], rel=1e-6)


def test_advantages_are_verls_grpo(batch: DataProto) -> None:
    done = advantaged(batch)
    table = table_of(from_data_proto(done))
    first = done.batch["advantages"][:, 0]  # GRPO: the same at every token
    assert table.advantage_N is not None
    np.testing.assert_allclose(table.advantage_N, first.double().numpy(), rtol=1e-6)
    assert float(first.abs().sum()) > 1


def test_entropy_is_verls(batch: DataProto) -> None:
    entropy = torch.rand(batch.batch["response_mask"].shape, generator=torch.manual_seed(3))
    found = statistics(table_of(from_data_proto(advantaged(batch), entropy=entropy)))
    for role in VOTING.role_names:
        mine = torch.from_numpy(batch.non_tensor_batch["role"] == role)
        theirs = agg_loss(entropy[mine], batch.batch["response_mask"][mine], "token-mean")
        assert found[role]["entropy"].mean == pytest.approx(float(theirs), rel=1e-6)


def test_ragged_rows_are_the_padded_ones_without_padding_rows(batch: DataProto) -> None:
    done = advantaged(batch)
    ragged = from_queue(*queued(done))  # type: ignore[arg-type]
    kept = [row for row in range(len(done)) if row != 5]
    plain = from_data_proto(done.select_idxs(kept))
    assert ragged.prompts == plain.prompts
    assert ragged.responses == plain.responses
    one, two = table_of(ragged), table_of(plain)
    for role, of_role in statistics(two).items():
        for name, stat in of_role.items():
            same = statistics(one)[role][name]
            assert (same.n, same.mean) == (stat.n, pytest.approx(stat.mean, rel=1e-9)), name
    assert one.episode_N is not None
    assert one.episode_N.tolist() == [row // 4 for row in kept]
    assert one.slot_N is not None
    assert one.slot_N.tolist() == [[0, 1, 2, 0][row % 4] for row in kept]


def test_what_the_reward_function_returned_may_name_the_role(batch: DataProto) -> None:
    own = np.empty(len(batch), dtype=object)
    own[:] = [{"role": role} for role in batch.non_tensor_batch.pop("role")]
    batch.non_tensor_batch["extra_fields"] = own
    rows = from_data_proto(batch)
    assert [role for role, _ in speakers(rows, RoleMap(), decode)][:4] == ["generator"] * 3 + [
        "aggregator"
    ]


def test_numbers_of_outputs_and_prompts_name_roles(batch: DataProto) -> None:
    data, keys, tags = queued(advantaged(batch))
    data["extra_fields"] = [{}] * len(keys)  # type: ignore[index]
    rows = from_queue(data, keys, tags)
    names = RoleMap("0=generator:0,1=generator:1,2=generator:2,3=aggregator")
    assert speakers(rows, names, decode)[:4] == [
        ("generator", 0),
        ("generator", 1),
        ("generator", 2),
        ("aggregator", None),
    ]
    opening = decode(rows.prompts[3])
    by_prompt = speakers(rows, RoleMap(f"~{opening}=aggregator,~.=generator"), decode)
    assert by_prompt[3] == ("aggregator", None)
    assert by_prompt[0] == ("generator", None)
    assert speakers(rows, RoleMap(), decode)[0] == ("", None)


def test_bypassed_log_probs_are_compared_with_nothing(batch: DataProto) -> None:
    table = table_of(from_data_proto(advantaged(batch)), Sampling(temperature=0.7, bypass=True))
    assert table.comparisons == ()
    assert "ppl" not in statistics(table)["generator"]


def test_a_truncated_row_is_as_long_as_allowed(batch: DataProto) -> None:
    rows = from_data_proto(batch)
    full = [len(ids) == 9 for ids in rows.responses]
    found = statistics(table_of(rows))
    share = np.mean(np.array(full)[batch.non_tensor_batch["role"] == "generator"])
    assert found["generator"]["truncated"].mean == pytest.approx(share)
    assert not math.isnan(share)
