from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.distributed.fsdp import FSDPModule

from reference_trainer.__main__ import main
from reference_trainer.episodes import Parse, Span
from reference_trainer.errors import RankError, SettingsError
from reference_trainer.ranks import (
    ALONE,
    OneProcess,
    ParallelSettings,
    block,
    first_decides,
    first_rank_first,
    launched,
    own_rows,
)


@dataclass
class Numbered(OneProcess):
    """One of several processes, for what needs no other one."""

    number: int = 0
    count: int = 1
    waited: int = 0

    def wait(self) -> None:
        self.waited += 1


def span(problem: int) -> Span:
    parse = Parse("failed", None)
    return Span(
        *(problem, 0, "generator", 0, 0, "shared", (1,), (2,), (0.0,), "stop"), "", parse, None, 0.0
    )


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 9))
def test_every_item_and_every_row_is_on_one_rank(numbers: list[int], count: int) -> None:
    ranks = [Numbered(number, count) for number in range(count)]
    blocks: list[Sequence[int]] = [block(numbers, one) for one in ranks]
    assert [item for part in blocks for item in part] == numbers
    assert max(map(len, blocks)) - min(map(len, blocks)) <= 1
    spans = [span(number) for number in numbers]
    shares = [own_rows(spans, one) for one in ranks]
    assert sorted(one.problem for share in shares for one in share) == sorted(numbers)
    # What is compared within a problem is on one rank.
    places = [{one.problem for one in share} for share in shares]
    assert sum(map(len, places)) == len(set(numbers))


def test_the_first_rank_is_alone_at_first() -> None:
    first, second = Numbered(0, 2), Numbered(1, 2)
    with first_rank_first(first):
        assert first.waited == 0
    assert first.waited == 1
    with first_rank_first(second):
        assert second.waited == 1
    assert second.waited == 1


def test_without_a_launcher_there_is_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "1"):
        monkeypatch.setenv("WORLD_SIZE", value)
        with launched(ParallelSettings("fsdp2")) as ranks:
            assert ranks is ALONE
    assert ranks.gather([1, 2]) == [1, 2]
    assert ranks.sum([1.5]) == [1.5]


def test_half_a_launchers_environment_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    with (
        pytest.raises(SettingsError, match=r"WORLD_SIZE is 2 but \['RANK'.*torchrun"),
        launched(ParallelSettings()),
    ):
        pass


def test_only_train_runs_in_several_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["evaluate", str(tmp_path)]) == 2
    assert "start `evaluate` without a launcher" in capsys.readouterr().err


def test_a_process_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    # What joining sets for the whole process must not reach the tests that come after.
    environment |= {"LOCAL_RANK": "0", "FSDP_CPU_RAM_EFFICIENT_LOADING": "false"}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with (
        pytest.raises(RankError, match=r"process 0 of 2 .* parallel\.patience = 0\.01 minutes"),
        launched(ParallelSettings(patience=0.01)),
    ):
        pass


def test_a_torch_that_cannot_gather_a_sharded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "2")
    monkeypatch.delattr(FSDPModule, "reset_iter_state")
    with (
        pytest.raises(SettingsError, match="newer torch"),
        launched(ParallelSettings(mode="fsdp2")),
    ):
        pass


def test_what_the_first_process_decides_holds_for_all() -> None:
    @dataclass
    class Second(OneProcess):
        number: int = 1
        spread_by_first: object = None

        def spread(self, value: object) -> Any:
            return self.spread_by_first

    def not_asked() -> int:
        raise AssertionError

    assert first_decides(ALONE, lambda: 3) == 3
    assert first_decides(Second(spread_by_first=(3, "")), not_asked) == 3
    with pytest.raises(SettingsError, match="not here"):
        first_decides(Second(spread_by_first=(None, "not here")), not_asked)
