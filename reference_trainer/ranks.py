"""What the trainer asks of the processes that share a run; a single one needs nothing of it.

Every rank holds all adapters and optimizers and takes the same decisions. What is shared out is the
work: a rank plays its problems, and in an update it computes the loss of its problems' rows. All
rows of a problem are on one rank, so what is compared within a problem is seen whole.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

from reference_trainer.episodes import Span
from reference_trainer.errors import SettingsError

if TYPE_CHECKING:
    from torch.nn import Parameter
    from transformers import PreTrainedModel

T = TypeVar("T")

Mode = Literal["ddp", "fsdp2"]
"""What ranks hold of the base model: all of it, or a part, gathered layer by layer when needed."""


class Ranks(Protocol):
    """The processes of a run, as one of them sees them.

    Whatever communicates must be called by every rank, in the same order.

    Attributes:
        number: Of this process, from 0.
        count: Processes.
    """

    number: int
    count: int

    def wait(self) -> None:
        """Return when every rank is here."""
        ...

    def gather(self, items: Sequence[T]) -> list[T]:
        """The items of all ranks, in the order of the ranks."""
        ...

    def spread(self, value: T) -> T:
        """The value that rank 0 has."""
        ...

    def sum(self, values: Sequence[float]) -> list[float]:
        """Element-wise sums over the ranks, in double precision."""
        ...

    def sum_gradients(self, parameters: Sequence[Parameter]) -> None:
        """Add the ranks' gradients up, in place; parameters without one are left out."""
        ...

    def hold(self, model: PreTrainedModel, trained: Sequence[Parameter]) -> None:
        """Take charge of the base weights; ``trained`` stay whole on every rank."""
        ...

    def whole_model(self) -> AbstractContextManager[None]:
        """While it is entered, forwards need no other rank: they may differ in number."""
        ...


class OneProcess:
    """A run that has a process to itself."""

    number = 0
    count = 1

    def wait(self) -> None:
        """Nobody to wait for."""

    def gather(self, items: Sequence[T]) -> list[T]:
        """The items."""
        return list(items)

    def spread(self, value: T) -> T:
        """The value."""
        return value

    def sum(self, values: Sequence[float]) -> list[float]:
        """The values."""
        return list(values)

    def sum_gradients(self, parameters: Sequence[Parameter]) -> None:
        """Nothing to add."""

    def hold(self, model: PreTrainedModel, trained: Sequence[Parameter]) -> None:
        """The model stays as it is."""

    def whole_model(self) -> AbstractContextManager[None]:
        """The model is whole."""
        return nullcontext()


ALONE = OneProcess()


@dataclass(frozen=True, slots=True)
class ParallelSettings:
    """What changes when a launcher starts several processes; their number is the launcher's.

    Attributes:
        mode: What a process holds of the base model: ``ddp``, all of it; ``fsdp2``, a part, whole
            only while it samples.
        patience: Minutes that a process waits for the others before the run ends. Processes wait
            for the one with the longest outputs and the slowest grades of an iteration.
    """

    mode: Mode = "ddp"
    patience: float = 60.0


@contextmanager
def launched(settings: ParallelSettings) -> Iterator[Ranks]:
    """The ranks that the launcher's environment names; one process without a launcher.

    Args:
        settings: Of several processes.

    Raises:
        RankError: If the processes lose each other.
        SettingsError: If the environment names several processes but not which one this is.
    """
    if processes() == 1:
        yield ALONE
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise SettingsError(
            f"WORLD_SIZE is {processes()} but {missing} are not set: start the run with torchrun "
            "or accelerate launch, or unset WORLD_SIZE"
        )
    from reference_trainer.parallel import joined

    with joined(settings) as ranks:
        yield ranks


def processes() -> int:
    """How many processes the launcher started for this run."""
    return int(os.environ.get("WORLD_SIZE") or 1)


def own_rows(spans: Sequence[Span], ranks: Ranks) -> list[Span]:
    """The rows that this rank computes in updates: those of its problems."""
    if ranks.count == 1:
        return list(spans)
    return [span for span in spans if span.problem % ranks.count == ranks.number]


def block(items: Sequence[T], ranks: Ranks) -> Sequence[T]:
    """This rank's consecutive part of ``items``; the parts of all ranks make up the whole."""
    first, end = (len(items) * (ranks.number + i) // ranks.count for i in (0, 1))
    return items[first:end]


@contextmanager
def first_rank_first(ranks: Ranks) -> Iterator[None]:
    """Entered by the first rank alone, then by the others: for what is made once on the disk."""
    if ranks.number > 0:
        ranks.wait()
    yield
    if ranks.number == 0:
        ranks.wait()


def first_decides(ranks: Ranks, decide: Callable[[], T]) -> T:
    """What ``decide`` returns on the first rank, on every rank.

    Raises:
        SettingsError: On every rank, if the first one raised it.
    """
    outcome: tuple[T | None, str] = (None, "")
    if ranks.number == 0:
        try:
            outcome = decide(), ""
        except SettingsError as error:
            outcome = None, str(error)
    value, problem = ranks.spread(outcome)
    if problem:
        raise SettingsError(problem)
    return cast(T, value)
