"""What is read from TRL's batches, piece by piece."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from roledrift_trl import batch

from roledrift.workflow import Workflow

PAIR = Workflow.of({"generator": 1, "aggregator": 1})


def trainer(**facts: Any) -> Any:
    known: dict[str, Any] = {
        "processing_class": SimpleNamespace(
            eos_token_id=1, pad_token_id=0, decode=lambda ids, **_: " ".join(map(str, ids))
        ),
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
    made = batch.Generation(0, 0, (0,) * 7, None, (0,) * 7)
    spans = made.spans(range(7), 3)
    assert batch.truncated(source(ids), trainer(), made, spans) == [True] + [False] * 6


def test_roles_outside_the_workflow_have_no_index() -> None:
    rows = [{"role": "aggregator"}, {"role": "judge"}, {}, {"role": "generator"}]
    first = batch.generation(PAIR, rows, columns=("role", None), after=None, step=4)
    assert (first.number, first.step, first.roles, first.slots) == (0, 4, (1, -1, -1, 0), None)
    rows = [{"who": "generator", "copy": 2}]
    second = batch.generation(PAIR, rows, columns=("who", "copy"), after=first, step=5)
    assert (second.number, second.roles, second.slots) == (1, (0,), (2,))


def test_lengths_count_what_the_model_wrote() -> None:
    made = batch.Generation(2, 0, (0, 0, 1, 1), None, (0, 0, 1, 1))
    out = {
        "completion_ids": torch.zeros(4, 3, dtype=torch.long),
        # Row 0 was truncated and taken out of the loss; row 2 holds one token of a tool.
        "completion_mask": torch.tensor([[0, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]),
        "tool_mask": torch.tensor([[0, 0, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1]]),
        "advantages": torch.zeros(4),
    }
    ids = [[5, 5, 5], [5, 1], [5, 6, 1], [1]]
    found = batch.rollout(PAIR, made, out, source=source(ids), trainer=trainer())
    assert found.mask_BT.sum(1).tolist() == [3, 2, 2, 1]
    assert found.text == ("5 5 5", "5 1", "5 1", "1")
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
