"""roledrift for TRL: one callback, no change to the training.

Typical use::

    from roledrift_trl import RoleDriftCallback

    trainer = GRPOTrainer(
        ...,
        train_dataset=dataset,  # with a column "role"
        callbacks=[RoleDriftCallback("voting", out="runs/voting")],
    )
"""

from __future__ import annotations

from collections.abc import Mapping

from roledrift_trl.callback import RoleDriftCallback, RoleDriftMixin

__all__ = ["TESTED", "RoleDriftCallback", "RoleDriftMixin"]

TESTED: Mapping[str, str] = {
    "trl": "1.16.0",
    "transformers": "5.19.0",
    "peft": "0.21.2",
    "torch": "2.13.0",
}
"""Versions that the tests of this integration ran against."""
