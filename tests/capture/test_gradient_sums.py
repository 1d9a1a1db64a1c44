from __future__ import annotations

import torch

from roledrift.capture.gradient_store import FullStore


def test_what_a_store_does_unless_it_knows_better() -> None:
    store = FullStore([(2, 3)], 1, dtype=torch.float64, device=torch.device("cpu"))
    dy, x = torch.ones(4, 2), torch.ones(4, 3)
    assert store.project(0, dy, x) == (dy, x)
    store.add_whole(0, dy.t() @ x)
    assert store.gram()[-1, -1] == 6 * 16
    assert store.memory() == 2 * 6 * 8
    store.clear()
    assert not store.gram().any()
