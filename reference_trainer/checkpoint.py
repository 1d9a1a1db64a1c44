"""Checkpoints: everything a run needs to go on as if it had never stopped.

One folder per checkpoint, named and arranged like those of the paper's code where that has a name
for the thing: ``global_step_<n>/actor/lora_adapter[_<policy>]/`` in PEFT's format. A folder gets
its name only once it is complete, and its manifest has the hash of every file: what is damaged
later is not resumed from.

The learning rate is a function of the step and every random stream is derived from the run's seed
and the step (:mod:`reference_trainer.seeds`), so what is left to keep is small: adapters, the
optimizers' moments, the global random generators (dropout draws from torch's), and the step.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from reference_trainer.errors import SettingsError, StorageError
from reference_trainer.manifest import damage, write_manifest
from reference_trainer.policies import AdapterBank
from roledrift.workflow import SHARED_POLICY

_PREFIX = "global_step_"
_LATEST = "latest_checkpointed_iteration.txt"
_STATE = "state.pt"
_POSITION = "position.json"


@dataclass(frozen=True, slots=True)
class Position:
    """Where in the run a checkpoint was made.

    Attributes:
        step: Iterations done.
        next_problem: Number of the first training problem not yet seen.
        accuracy: Of the validation that ended this iteration, None without one.
    """

    step: int
    next_problem: int
    accuracy: float | None = None


def save_adapters(bank: AdapterBank, folder: Path) -> None:
    """Write the adapters only; older ones go once the new ones are complete."""
    draft = _draft(folder)
    bank.save(draft)
    _put(draft, folder)


def load_adapters(bank: AdapterBank, folder: Path) -> None:
    """Read adapters into the policies of ``bank``.

    Args:
        bank: Its adapters are overwritten.
        folder: One that :func:`save_adapters` or :func:`save_checkpoint` wrote.

    Raises:
        SettingsError: If a policy of the bank is not there, or a checkpoint is damaged.
    """
    if not (folder / "actor").is_dir():
        bank.load(folder)
        return
    if wrong := damage(folder):
        raise SettingsError(f"checkpoint {folder} {wrong}")
    folders = {policy: folder / "actor" / _adapter(policy) for policy in bank.policies}
    missing = [policy for policy, where in folders.items() if not where.is_dir()]
    if missing:
        raise SettingsError(
            f"{folder} holds no adapter for {missing}: is it a checkpoint of another routing?"
        )
    for policy, where in folders.items():
        bank.load_adapter(policy, where)


def save_checkpoint(
    bank: AdapterBank,
    folder: Path,
    position: Position,
    *,
    keep: int,
    spare: Collection[int] = (),
) -> Path:
    """Add a checkpoint and drop those that are no longer wanted.

    Args:
        bank: Adapters and optimizers.
        folder: Of all checkpoints of the run.
        position: Where the run is.
        keep: So many of the latest stay, and the best; 0 keeps all.
        spare: Steps that stay as well.

    Returns:
        The folder of the new checkpoint.

    Raises:
        StorageError: If it cannot be written, because the disk is full for example.
    """
    final = folder / f"{_PREFIX}{position.step}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(bank, _draft(final), final, position)
        write_atomically(folder / _LATEST, f"{position.step}")
    except (OSError, RuntimeError, SafetensorError) as error:  # torch's own file errors say Runtime
        shutil.rmtree(_draft(final), ignore_errors=True)
        raise StorageError(_not_written(final, error)) from error
    _prune(folder, keep=keep, spare=spare)
    return final


def _write(bank: AdapterBank, draft: Path, final: Path, position: Position) -> None:
    bank.save(draft / "actor")
    for policy in bank.policies:
        (draft / "actor" / policy).rename(draft / "actor" / _adapter(policy))
    torch.save(_state(bank), draft / _STATE)
    (draft / _POSITION).write_text(json.dumps(asdict(position)) + "\n", "utf-8")
    write_manifest(draft)
    _put(draft, final)


def _not_written(final: Path, error: Exception) -> str:
    complete = list(checkpoints(final.parent).values())
    before = (
        f"the newest whole one is {complete[-1].name}" if complete else "there is no earlier one"
    )
    reason = str(error).splitlines()[0]
    return (
        f"checkpoint {final} could not be written: {reason}. If the disk is full, make room, then "
        f"start the run again with --resume; {before}"
    )


def checkpoints(folder: Path) -> dict[int, Path]:
    """Step to folder of every complete checkpoint, in order."""
    by_step = {
        int(number): path
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name.startswith(_PREFIX) and (number := path.name[len(_PREFIX) :]).isdecimal()
    }
    return dict(sorted(by_step.items()))


def latest_whole(folder: Path) -> tuple[Path | None, tuple[str, ...]]:
    """The newest checkpoint that is as it was written.

    Returns:
        Its folder, None if there is no checkpoint at all; and a sentence on every newer one that is
        damaged.

    Raises:
        SettingsError: If there are checkpoints and all are damaged.
    """
    sentences: list[str] = []
    for checkpoint in reversed(checkpoints(folder).values()):
        wrong = damage(checkpoint)
        if not wrong:
            return checkpoint, tuple(sentences)
        sentences.append(f"checkpoint {checkpoint} {wrong}")
    if sentences:
        raise SettingsError(
            f"{'; '.join(sentences)}. No checkpoint can be resumed from: resume with the version "
            f"that wrote them, delete {folder} and resume again to begin anew, or train into "
            "another folder"
        )
    return None, ()


def drop_after(folder: Path, step: int) -> None:
    """Delete the checkpoints that were made after iteration ``step``."""
    for made, checkpoint in checkpoints(folder).items():
        if made > step:
            _delete(checkpoint)


def restore(bank: AdapterBank, checkpoint: Path) -> Position:
    """Adapters, optimizers and random generators as they were.

    Raises:
        SettingsError: As :func:`load_adapters`, or if it is whole and holds something else.
    """
    load_adapters(bank, checkpoint)
    try:
        state = torch.load(checkpoint / _STATE, weights_only=True)
        for name, optimizer in bank.optimizers.items():
            optimizer.load_state_dict(state["optimizers"][name])
        _set_generators(state["generators"])
        return position_of(checkpoint)
    except (KeyError, TypeError, ValueError, RuntimeError, UnpicklingError) as error:
        raise SettingsError(
            f"checkpoint {checkpoint} was written by another version: {_STATE} or {_POSITION} does "
            f"not hold what this one resumes from ({type(error).__name__}: {error}). Resume with "
            "the version that wrote it, or train into another folder"
        ) from error


def position_of(checkpoint: Path) -> Position:
    """Where in the run ``checkpoint`` was made."""
    return Position(**json.loads((checkpoint / _POSITION).read_text("utf-8")))


def write_atomically(file: Path, text: str) -> None:
    """Replace ``file`` by ``text``: whoever reads it sees the old text or the new one, whole."""
    draft = file.with_name(f".draft-{file.name}")
    draft.write_text(text, "utf-8")
    draft.replace(file)


def _adapter(policy: str) -> str:
    return "lora_adapter" if policy == SHARED_POLICY else f"lora_adapter_{policy}"


def _state(bank: AdapterBank) -> dict[str, Any]:
    return {
        "optimizers": {name: optimizer.state_dict() for name, optimizer in bank.optimizers.items()},
        "generators": _generators(),
    }


def _generators() -> dict[str, Any]:
    kind, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": random.getstate(),
        "numpy": [str(kind), [int(key) for key in keys], int(position), has_gauss, float(cached)],
    }


def _set_generators(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    random.setstate(state["python"])
    kind, keys, *rest = state["numpy"]
    np.random.set_state((kind, np.array(keys, dtype=np.uint32), *rest))


def _prune(folder: Path, *, keep: int, spare: Collection[int]) -> None:
    present = checkpoints(folder)
    if keep <= 0 or len(present) <= keep:
        return
    accuracies = {step: _accuracy(checkpoint) for step, checkpoint in present.items()}
    best = max(present, key=lambda step: (-1.0 if (a := accuracies[step]) is None else a, -step))
    for step in list(present)[:-keep]:
        if step != best and step not in spare:
            _delete(present[step])


def _delete(checkpoint: Path) -> None:
    # The name goes first: half a checkpoint must not look like a whole one.
    shutil.rmtree(checkpoint.rename(checkpoint.with_name(f".old-{checkpoint.name}")))


def _accuracy(checkpoint: Path) -> float | None:
    try:
        return position_of(checkpoint).accuracy
    except (OSError, ValueError, TypeError):  # a damaged one must not end a run that goes well
        return None


def _draft(final: Path) -> Path:
    """An empty place for what will become ``final``."""
    final.parent.mkdir(parents=True, exist_ok=True)
    draft = final.with_name(f".draft-{final.name}")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(final.with_name(f".old-{final.name}"), ignore_errors=True)
    return draft


def _put(draft: Path, final: Path) -> None:
    """Give ``draft`` its name, after its bytes are on the disk."""
    for path in _files(draft):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
    old = final.with_name(f".old-{final.name}")
    if final.exists():
        final.rename(old)
    draft.rename(final)
    shutil.rmtree(old, ignore_errors=True)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())
