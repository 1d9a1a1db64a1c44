"""What the trainer itself leaves in a run directory, all of it under ``trainer/``.

``config.json`` (the run, resolved), ``trace.jsonl`` (one line per iteration, line 0 the validation
before the first), ``checkpoints/``, ``adapters/`` (the final ones), ``finished.json``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from socket import gethostname
from typing import Any

from safetensors import SafetensorError

from reference_trainer.checkpoint import checkpoints, write_atomically
from reference_trainer.config import Config, from_mapping
from reference_trainer.errors import SettingsError, StorageError

_MAY_CHANGE = (
    *("name", "train.steps", "checkpoint.every", "checkpoint.keep", "parallel.mode"),
    *("parallel.patience", "rollout.grading_patience", "rollout.max_rows"),
    *("rollout.vllm.gpu_memory", "rollout.vllm.rows", "rollout.vllm.eager", "rollout.vllm.sleep"),
    *("sandbox.floor", "sandbox.workers"),
)
"""Settings that a resumed run may have differently: they change no iteration, up to rounding."""

MILESTONES = "milestones.json"
"""File of ``<run>/evaluation/``: the steps of the base model, and of the early, best and last
checkpoint."""

_SHOWN = 5
"""Differing settings that a message names."""


class RunFolder:
    """The ``trainer/`` folder of one run.

    Args:
        run: Run directory.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / "trainer"
        self.checkpoints = self.path / "checkpoints"
        self.adapters = self.path / "adapters"
        self._config = self.path / "config.json"
        self._trace = self.path / "trace.jsonl"
        self._finished = self.path / "finished.json"

    def holds_a_run(self) -> bool:
        """Whether a run was begun here."""
        return self._config.is_file()

    def begin(self, config: Config) -> None:
        """Describe a new run."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._trace.write_text("", "utf-8")
        described = {"stress": config.stress.label, "config": asdict(config)}
        write_atomically(self._config, json.dumps(described, indent=2, default=str) + "\n")

    def go_on(self, config: Config, *, after: int) -> None:
        """Take up the run that is here: forget what it did after iteration ``after``.

        Raises:
            SettingsError: If it was another run; says which settings differ.
        """
        self.refuse_another(config)
        self._finished.unlink(missing_ok=True)
        kept = [line for row, line in self._lines() if after > 0 and int(row["step"]) <= after]
        write_atomically(self._trace, "".join(kept))
        described = {"stress": config.stress.label, "config": asdict(config)}
        write_atomically(self._config, json.dumps(described, indent=2, default=str) + "\n")

    def refuse_another(self, config: Config) -> None:
        """Raise a :class:`SettingsError` if the run that is here has other settings."""
        # Read like any other: a setting that an earlier version did not know has its default.
        stored = dict(_flat(json.loads(json.dumps(asdict(self.config()), default=str))))
        wanted = dict(_flat(json.loads(json.dumps(asdict(config), default=str))))
        differing = [
            f"{name} was {stored.get(name)!r}, is {wanted.get(name)!r}"
            for name in sorted(stored.keys() | wanted.keys())
            if stored.get(name) != wanted.get(name) and name not in _MAY_CHANGE
        ]
        if differing:
            shown = "; ".join(differing[:_SHOWN])
            more = len(differing) - _SHOWN
            rest = f"; and {more} more, see {self._config}" if more > 0 else ""
            raise SettingsError(
                f"{self.path.parent} cannot be resumed with other settings: {shown}{rest}. Resume "
                "it with its own settings, or train into another folder"
            )

    def config(self) -> Config:
        """The run that is here.

        Raises:
            SettingsError: If there is none.
        """
        if not self.holds_a_run():
            raise SettingsError(
                f"{self.path.parent} holds no trainer/config.json: give a folder written by `train`"
            )
        try:
            return from_mapping(json.loads(self._config.read_text("utf-8"))["config"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._config} cannot be read: it must hold the settings that this version of "
                f"`train` writes, but {error}. Put it back from a copy, use the version that wrote "
                "it, or train into another folder"
            ) from error

    @contextmanager
    def storing(self, what: str) -> Iterator[None]:
        """Say what became of a run if what is written inside cannot be written.

        Args:
            what: What it belongs to, for the message.

        Raises:
            StorageError: If the disk is full, or another process took the folder away.
        """
        try:
            yield
        except StorageError:  # a checkpoint says it itself
            raise
        except (OSError, SafetensorError) as error:
            complete = list(checkpoints(self.checkpoints))
            where = f"goes on from iteration {complete[-1]}" if complete else "begins anew"
            raise StorageError(
                f"{self.path} on {gethostname()} does not take what {what} left "
                f"({str(error).splitlines()[0]}): the run ends here. Free space or restore access, "
                f"and start it again with --resume: it {where}"
            ) from error

    def write(self, row: Mapping[str, Any]) -> None:
        """Append one line to the trace."""
        with self._trace.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def trace(self) -> list[dict[str, Any]]:
        """All whole lines of the trace."""
        return [row for row, _ in self._lines()]

    def finish(self, *, steps: int, stopped: str) -> None:
        """Note that the run came to its end."""
        write_atomically(
            self._finished, json.dumps({"steps": steps, "stopped": stopped}, indent=2) + "\n"
        )

    def finished(self) -> dict[str, Any] | None:
        """``steps`` done and why it ``stopped`` (empty for all iterations); None if it goes on."""
        if not self._finished.is_file():
            return None
        try:
            values = json.loads(self._finished.read_text("utf-8"))
            return {"steps": int(values["steps"]), "stopped": str(values["stopped"])}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._finished} cannot be read: it must hold the `steps` that were done and why "
                f"the run `stopped`, but {error}. Delete it and resume the run"
            ) from error

    def _lines(self) -> Iterator[tuple[dict[str, Any], str]]:
        if not self._trace.is_file():
            return
        lines = self._trace.read_text("utf-8", errors="replace").splitlines(keepends=True)
        for number, line in enumerate(lines, start=1):
            # A killed process may leave half a line, always the last one.
            if line.endswith("\n"):
                yield self._row(line, number), line

    def _row(self, line: str, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
            return {**row, "step": int(row["step"])}
        except (ValueError, KeyError, TypeError) as error:
            raise SettingsError(
                f"{self._trace}, line {number}, is damaged: every line must be a JSON object with "
                f"its `step`, but {error}. Put it back from a copy, or train into another folder"
            ) from error


def validated(trace: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Step to validation accuracy, from step 0."""
    return {row["step"]: row["validation"]["accuracy"] for row in trace if row.get("validation")}


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
