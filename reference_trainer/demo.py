"""Three runs: a healthy one, one whose generator drifts, one whose aggregator inflates."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from reference_trainer.children import Launch, run_all
from reference_trainer.config import load
from reference_trainer.errors import SettingsError
from reference_trainer.pretrain import base_key

CELLS = ("voting-ip-hot", "voting-ip-healthy", "voting-sp-verbose")


def run_demo(out: Path, *, cache: Path, seed: int, jobs: int, overwrite: bool) -> int:
    """Warm up, train the three cells, write the report.

    Args:
        out: Gets one run directory per cell and ``report/``.
        cache: For the warmed-up models.
        seed: Of the three runs.
        jobs: Processes at the same time, one thread each.
        overwrite: Remove the runs of an earlier demo first.

    Returns:
        0, or 1 if a part failed.

    Raises:
        SettingsError: If there are runs in ``out`` and ``overwrite`` is False.
    """
    start = time.monotonic()
    folders = [out / cell for cell in CELLS]
    _clear([*folders, out / "report"], overwrite=overwrite)
    print(f"demo: three runs into {out}, {jobs} at a time", flush=True)
    bases: dict[str, str] = {}
    for cell in CELLS:
        config = load(cell)
        if key := base_key(config):
            bases.setdefault(key, cell)
    warm_ups = [
        ["pretrain", cell, "--cache", str(cache)]
        for key, cell in bases.items()
        if not (cache / key).is_dir()
    ]
    runs = [
        ["train", cell, "--out", str(folder), "--cache", str(cache), "--set", f"seed={seed}"]
        for cell, folder in zip(CELLS, folders, strict=True)
    ]
    for stage in (warm_ups, runs):
        names = [command[1] for command in stage]
        if any(run_all(stage, launch=Launch(jobs), say=partial(_pass_on, names))):
            print("demo: a part failed, see above", file=sys.stderr)
            return 1
    report = [*map(str, folders), "--out", str(out / "report")]
    code = subprocess.run(
        [sys.executable, "-m", "roledrift", "report", *report],
        stdout=subprocess.DEVNULL,
        check=False,
    ).returncode
    if code:
        print(f"demo: the report failed with exit code {code}", file=sys.stderr)
        return 1
    print(
        f"demo: {time.monotonic() - start:.0f} s; open {(out / 'report' / 'index.html').resolve()}"
    )
    return 0


def _clear(folders: Sequence[Path], *, overwrite: bool) -> None:
    present = [folder for folder in folders if folder.exists()]
    if present and not overwrite:
        raise SettingsError(
            f"{present[0]} is already there: choose another --out, or --overwrite to replace it"
        )
    for folder in present:
        shutil.rmtree(folder)


def _pass_on(names: Sequence[str], number: int, line: str) -> None:
    name = names[number]
    print(line if line.startswith(name) else f"{name}: {line}", flush=True)
