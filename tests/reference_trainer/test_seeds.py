from reference_trainer.seeds import derive


def test_streams_are_stable_and_apart() -> None:
    assert derive(0, "rollout", 1) == 8911054625556009685  # the same on every machine
    names = [("rollout", 1), ("rollout", 11), ("rollout", 2), ("order", 1)]
    seeds = {derive(seed, *name) for seed in (0, 1) for name in names}
    assert len(seeds) == 8
    assert all(0 <= one < 2**63 for one in seeds)
