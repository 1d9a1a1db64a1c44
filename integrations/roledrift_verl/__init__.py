"""roledrift for verl: a plugin; nothing of the training script changes.

verl 0.9 and newer load it by themselves, older versions with
``VERL_USE_EXTERNAL_MODULES=roledrift_verl.plugin``. It does nothing until it is told the workflow::

    python -m verl.trainer.main_ppo ... +roledrift.workflow=voting

Importing this package imports nothing of verl.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TESTED"]

TESTED: Mapping[str, str] = {
    "verl": "0.9.1, 0.8.0",
    "torch": "2.13.0",
    "tensordict": "0.10.0",
    "TransferQueue": "0.1.11",
    "ray": "2.60.0",
}
"""Versions that the tests of this integration ran against."""
