"""Adapters on disk, one folder per policy in PEFT's format."""

from __future__ import annotations

import shutil
from pathlib import Path

from reference_trainer.policies import AdapterBank


def save_checkpoint(bank: AdapterBank, folder: Path) -> None:
    """Write the adapters; an older checkpoint goes only once the new one is complete."""
    draft = folder.with_name(folder.name + ".draft")
    shutil.rmtree(draft, ignore_errors=True)
    bank.save(draft)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def load_checkpoint(bank: AdapterBank, folder: Path) -> None:
    """Read adapters that :func:`save_checkpoint` wrote into the policies of ``bank``."""
    bank.load(folder)
