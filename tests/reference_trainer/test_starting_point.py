"""What the first process found in the run directory holds for all, once they see it."""

import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from reference_trainer import starting_point
from reference_trainer.checkpoint import Position, save_checkpoint
from reference_trainer.config import Config
from reference_trainer.errors import AdapterError, SettingsError
from reference_trainer.ranks import OneProcess
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import Setup, hand_over, prepare
from reference_trainer.starting_point import StartingPoint, take_up


@dataclass
class Second(OneProcess):
    """The second of two processes, and what the first one has."""

    number: int = 1
    count: int = 2
    first: Any = None

    def spread(self, value: object) -> Any:
        return self.first, ""

    def gather(self, items: Any) -> list[Any]:
        return [self.first, *items]


@pytest.fixture(scope="module")
def setup(smoke: Config, cache: Path, base_folder: Path) -> Setup:
    return prepare(smoke, cache=cache)


def second(setup: Setup, first: object) -> Setup:
    return replace(setup, stage=replace(setup.stage, ranks=Second(first=first)))


def test_a_node_waits_until_it_sees_the_checkpoint(setup: Setup, tmp_path: Path) -> None:
    made = save_checkpoint(setup.bank, tmp_path / "made", Position(7, 0), keep=0)
    late = tmp_path / "checkpoints" / "global_step_7"
    late.parent.mkdir()
    one = second(setup, StartingPoint(0, late))
    writer = threading.Timer(0.3, lambda: made.rename(late))
    writer.start()
    assert take_up(one, RunFolder(tmp_path), resume=True).done == 7
    writer.join()


def test_a_node_that_never_sees_it(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting_point, "_UNSEEN_SECONDS", 0.1)
    one = second(setup, StartingPoint(0, tmp_path / "elsewhere"))
    with pytest.raises(SettingsError, match=r"does not see .*elsewhere.* at the same path"):
        take_up(one, RunFolder(tmp_path), resume=True)


def test_processes_with_different_weights(setup: Setup) -> None:
    held = {policy: setup.bank.fingerprint(policy) for policy in setup.bank.policies}
    hand_over(second(setup, held), setup.bank.policies, done=0)
    policy = setup.bank.policies[-1]
    setup.bank.parameters_of(policy)[0].data.view(-1)[0] += 1e-6
    with pytest.raises(AdapterError, match=rf"process 1 holds other weights of {policy} than"):
        hand_over(second(setup, held), setup.bank.policies, done=0)
