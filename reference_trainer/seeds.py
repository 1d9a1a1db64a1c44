"""Independent random streams from one seed.

Every consumer derives its own seed from the run's seed and its own name, so that validating more
often, or resuming at step 30, never changes what another consumer draws.
"""

from __future__ import annotations

import hashlib


def derive(seed: int, *names: str | int) -> int:
    """A 63-bit seed for the stream called ``names`` under ``seed``."""
    key = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") >> 1
