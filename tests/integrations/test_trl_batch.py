"""What is read from TRL's batches, piece by piece."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from roledrift_trl import batch
from torch import nn

from roledrift.workflow import Workflow

PAIR = Workflow.of({"generator": 1, "aggregator": 1})


def trainer(**facts: Any) -> Any:
    known: dict[str, Any] = {
        "processing_class": SimpleNamespace(eos_token_id=1, pad_token_id=0),
        "eos_token_ids": [1, 9],
        "max_completion_length": 3,
        "num_generations": 2,
        "reward_weights": torch.tensor([1.0, 0.5]),
        "accelerator": SimpleNamespace(process_index=0),
    }
    return SimpleNamespace(**{**known, **facts})


def source(ids: list[list[int]]) -> batch.Scored:
    texts = [" ".join(map(str, one)) for one in ids]
    return batch.Scored(["p"] * len(ids), texts, ids, torch.zeros(len(ids)))


def test_rewards_are_the_weighted_sum_of_the_rows_of_this_process() -> None:
    nan = torch.nan
    rewards_BF = torch.tensor([[9.0, 9.0], [9.0, 9.0], [1.0, 2.0], [3.0, nan], [nan, nan]])
    call = ([{}] * 3, ["p"] * 3, ["c"] * 3, [[1]] * 3)
    ours = trainer(accelerator=SimpleNamespace(process_index=1))
    # Rows 3 to 5 of six: the sixth is missing here on purpose, so only two are left.
    found = batch.scored(call, torch.cat([rewards_BF[:1], rewards_BF]), ours)
    torch.testing.assert_close(found.reward_B, torch.tensor([2.0, 3.0, nan]), equal_nan=True)


def test_truncated_means_at_the_limit_without_an_end() -> None:
    ids = [[5, 5, 5], [5, 5, 1], [5, 5, 9], [5, 5, 0], [5, 5], [5], []]
    assert batch.truncated(source(ids), trainer()) == [True] + [False] * 6


def test_roles_outside_the_workflow_have_no_index() -> None:
    rows = [{"role": "aggregator"}, {"role": "judge"}, {}, {"role": "generator"}]
    first = batch.generation(PAIR, rows, columns=("role", None), after=None, step=4)
    assert (first.number, first.step, first.roles, first.slots) == (0, 4, (1, -1, -1, 0), None)
    rows = [{"who": "generator", "copy": 2}]
    second = batch.generation(PAIR, rows, columns=("who", "copy"), after=first, step=5)
    assert (second.number, second.roles, second.slots) == (1, (0,), (2,))


def test_lengths_count_what_the_model_wrote() -> None:
    made = batch.Generation(2, 0, (0, 0, 1, 1), None)
    out = {
        "completion_ids": torch.zeros(4, 3, dtype=torch.long),
        # Row 0 was truncated and taken out of the loss; row 2 holds one token of a tool.
        "completion_mask": torch.tensor([[0, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]),
        "tool_mask": torch.tensor([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1]]),
        "advantages": torch.zeros(4),
    }
    ids = [[5, 5, 5], [5, 1], [5, 5, 1], [1]]
    found = batch.rollout(PAIR, made, out, source=source(ids), trainer=trainer())
    assert found.mask_BT.sum(1).tolist() == [3, 2, 2, 1]
    assert found.group_B is not None
    assert found.group_B.tolist() == [8, 8, 9, 9]
    cut = batch.rollout(PAIR, made, out, source=source(ids), trainer=trainer(num_generations=8))
    assert cut.group_B is None


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("plain", "plain"),
        ([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}], "one\ntwo"),
        ([{"role": "user", "content": [{"type": "text", "text": "part"}]}], "part"),
        ([{"role": "assistant", "content": None}], ""),
    ],
)
def test_messages_as_text(message: Any, text: str) -> None:
    assert batch.text_of(message) == text


def test_prompt_names_are_stable() -> None:
    assert batch.prompt_name("1 + 1") == batch.prompt_name("1 + 1") == "72fce59447a0"
    assert batch.prompt_name("1 + 1") != batch.prompt_name("1 + 2")
    one = [{"role": "user", "content": "a"}]
    assert batch.prompt_name(one) == batch.prompt_name([{"content": "a", "role": "user"}])


def rows(roles: tuple[int, ...], number: int = 0, start: int = 0) -> batch.Rows:
    marks = torch.arange(start, start + len(roles))[:, None]
    made = batch.Generation(number, 0, roles, None)
    return batch.Rows(made, roles, marks, marks, marks, marks.float())


def test_rows_to_score_again_are_some_of_each_role() -> None:
    parts = [rows((0, 0, 0, 1)), rows((0, 1, -1, 0), start=4)]
    (chosen,) = batch.choose(parts, per_role=2, roles=2)
    assert chosen.roles == (0, 0, 1, 1)
    assert chosen.ids_BL.flatten().tolist() == [0, 1, 3, 5]
    assert chosen.logp_BC.flatten().tolist() == [0.0, 1.0, 3.0, 5.0]


def test_as_many_rows_are_scored_again_whatever_the_mixture_of_roles() -> None:
    sizes = {
        len(batch.choose([rows(roles)], per_role=2, roles=2)[0].roles)
        for roles in ((0, 0, 0, 0, 0), (0, 1, 1, 1, 1), (-1, -1, -1, -1, 0), (0, 0, 0, 1, 1))
    }
    assert sizes == {4}


def test_rows_of_different_generations_are_kept_apart() -> None:
    parts = [rows((0, 1)), rows((0, 1), number=1), rows((1, 0), number=1, start=2)]
    first, second = batch.choose(parts, per_role=3, roles=2)
    assert (first.roles, second.roles) == ((0, 1), (0, 1, 1, 0))
    assert batch.choose([], per_role=3, roles=2) == []


def test_every_module_gets_its_own_mode_back() -> None:
    model = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2)).train()
    model[1].eval()
    with batch.evaluating(model):
        assert not any(module.training for module in model.modules())
    assert [module.training for module in model.modules()] == [True, True, False]


def test_dropout_is_found_in_layers_and_in_the_configuration() -> None:
    quiet = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0))
    assert not batch.is_noisy(quiet)
    assert batch.is_noisy(nn.Sequential(nn.Dropout(0.1)))
    quiet.config = SimpleNamespace(attention_dropout=0.0, hidden_size=2.0)  # type: ignore[assignment]
    assert not batch.is_noisy(quiet)
    quiet.config = SimpleNamespace(attention_dropout=0.1)  # type: ignore[assignment]
    assert batch.is_noisy(quiet)
