"""Lines of results, made up."""

from collections.abc import Sequence
from typing import Any


def row(
    place: str, base: int = 3, seed: int = 300, *, accuracy: Sequence[float] = (), **more: Any
) -> dict[str, Any]:
    experiment, arm = place.split("/")
    told = {"outcome": "clean", "sentence": "", "incidents": [], "alerts": []}
    given = {
        **{"experiment": experiment, "arm": arm, "base": base, "seed": seed},
        **{"config": "c", "code": "x", "cpu": 1.0, "seconds": 0.5, "accuracy": list(accuracy)},
        **{"roles": {}, "policies": {}, "validation": {}, "gradients": [], "told": told},
    }
    return given | more


def terse(shares: Sequence[float]) -> dict[str, Any]:
    return {"aggregator": {"terse": list(shares)}}
