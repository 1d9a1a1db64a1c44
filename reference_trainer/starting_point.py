"""Where a run starts: at its beginning, or behind one of its checkpoints.

The first rank alone looks into the run directory and decides for all: on a network filesystem
another node may not see yet what was written last.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname

from reference_trainer.checkpoint import drop_after, latest_whole, load_adapters, restore
from reference_trainer.config import Config
from reference_trainer.errors import SettingsError
from reference_trainer.ranks import first_decides
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import Setup

_UNSEEN_SECONDS = 90.0
"""How long a node may not see what another one wrote: NFS keeps what it knows of a folder for up to
60 seconds."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Where a run starts.

    Attributes:
        done: Iterations that are done.
        checkpoint: What to restore; None at the beginning.
        ended: Final adapters of a run that has nothing left to do; None for any other.
        stopped: Why such a run ended early; empty if it did not.
    """

    done: int
    checkpoint: Path | None = None
    ended: Path | None = None
    stopped: str = ""


def take_up(setup: Setup, folder: RunFolder, *, resume: bool) -> StartingPoint:
    """Put adapters and optimizers where they were after the iterations that are done.

    Args:
        setup: Its adapters are overwritten.
        folder: Of the run; every rank must see it.
        resume: Whether a run that is there may be gone on with.

    Raises:
        SettingsError: If there is a run and ``resume`` is False, or another one, or a rank does not
            see it.
    """
    ranks = setup.stage.ranks
    start = first_decides(ranks, lambda: _find(setup.config, folder, resume=resume))
    where = start.checkpoint or start.ended
    if where is not None and ranks.number > 0:
        _await(where, _UNSEEN_SECONDS)
    if start.ended is not None:
        load_adapters(setup.bank, start.ended)
    elif start.checkpoint is not None:
        return replace(start, done=restore(setup.bank, start.checkpoint).step)
    return start


def drop_the_rest(folder: RunFolder, config: Config, start: StartingPoint) -> None:
    """Begin the trace of a run, or forget what it did after ``start``."""
    if folder.holds_a_run():
        folder.go_on(config, after=start.done)
        # Only damaged ones: the run is taken up from the newest that is whole.
        drop_after(folder.checkpoints, start.done)
    else:
        folder.begin(config)


def _find(config: Config, folder: RunFolder, *, resume: bool) -> StartingPoint:
    if not folder.holds_a_run():
        return StartingPoint(0)
    if not resume:
        raise SettingsError(
            f"{folder.path.parent} holds a run already: choose another folder, or resume it"
        )
    folder.refuse_another(config)
    finished = folder.finished()
    if finished and (finished["stopped"] or finished["steps"] >= config.train.steps):
        return StartingPoint(
            config.train.steps, ended=folder.adapters, stopped=str(finished["stopped"])
        )
    checkpoint, damaged = latest_whole(folder.checkpoints)
    for sentence in damaged:
        assert checkpoint is not None
        print(f"{sentence}. The run goes on from {checkpoint.name}.", file=sys.stderr)
    return StartingPoint(0, checkpoint)


def _await(path: Path, seconds: float) -> None:
    """Return when this node sees ``path``, which another one wrote."""
    begin = time.monotonic()
    while not path.is_dir():
        if time.monotonic() - begin > seconds:
            raise SettingsError(
                f"{gethostname()} does not see {path}, which the first process goes on from: put "
                "the run directory on a filesystem that all nodes have at the same path"
            )
        time.sleep(min(1.0, seconds))
