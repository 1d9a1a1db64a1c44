"""roledrift for rLLM 0.3: a backend that is watched.

rLLM's ``UnifiedTrainer`` takes the class of its backend; :func:`roledrift_rllm.watch.watched` makes
one out of any of rLLM's that calls roledrift in the hooks rLLM has for that::

    trainer = UnifiedTrainer(
        backend_cls=watched(TinkerBackend, workflow="voting", out="runs/voting"), ...
    )

Nothing of rLLM is imported or changed.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TESTED"]

TESTED: Mapping[str, str] = {"rllm": "0.3.0.pre (9beb6e0)", "verl": "0.8.0", "torch": "2.13.0"}
"""Versions that the tests of this integration ran against."""
