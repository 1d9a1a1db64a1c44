"""Independent random streams from one seed.

Every consumer derives its own seed from the run's seed and its own name, so that validating more
often, or resuming at step 30, never changes what another consumer draws. The same holds for single
outputs: each has a seed of its own, so what it is batched with does not change it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream called ``names`` under ``seed``."""
    key = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1


def uniforms(seeds: Sequence[int], count: int) -> NDArray[np.float64]:
    """The first ``count`` numbers of the stream of every seed.

    A stream is SplitMix64 (Steele, Lea and Flood 2014), read by position: a row costs the same
    whatever other rows there are, and no generator is built for it. The upper 53 bits of a number
    are the result.

    Args:
        seeds: One per row; integers from 0 below 2**64.
        count: Numbers per row.

    Returns:
        Shape ``[len(seeds), count]``, in [0, 1).
    """
    steps = np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN
    state = np.array(seeds, dtype=np.uint64)[:, None] + steps
    state = (state ^ (state >> np.uint64(30))) * _MIX[0]
    state = (state ^ (state >> np.uint64(27))) * _MIX[1]
    state ^= state >> np.uint64(31)
    return np.asarray((state >> np.uint64(11)) * 2.0**-53)
