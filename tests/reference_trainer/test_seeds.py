import numpy as np
from scipy.stats import kstest

from reference_trainer.seeds import derive, uniforms


def test_streams_are_stable_and_apart() -> None:
    assert derive(0, "rollout", 1) == 8911054625556009685  # the same on every machine
    names = [("rollout", 1), ("rollout", 11), ("rollout", 2), ("order", 1)]
    seeds = {derive(seed, *name) for seed in (0, 1) for name in names}
    assert len(seeds) == 8
    assert all(0 <= one < 2**63 for one in seeds)


def test_uniforms_are_those_of_splitmix64() -> None:
    # The first outputs for seed 1234567 as published with the algorithm, their upper 53 bits.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    found = uniforms([1234567, 0, 2**64 - 1], 5)
    assert found.shape == (3, 5)
    assert found[0].tolist() == [(one >> 11) / 2**53 for one in published]
    # And of a slow reference with Python's integers.
    for row, seed in zip(found, (1234567, 0, 2**64 - 1), strict=True):
        assert row.tolist() == [_splitmix(seed, i + 1) for i in range(5)]


def test_uniforms_are_uniform_and_rows_apart() -> None:
    seeds = range(3000)  # neighbours, the hardest case
    found = uniforms(seeds, 4)
    for column in found.T:
        assert kstest(column, "uniform").pvalue > 1e-3
    pairs = np.corrcoef(np.concatenate([found[:-1].T, found[1:].T]))
    assert np.abs(pairs - np.eye(8)).max() < 0.08
    assert uniforms([], 4).shape == (0, 4)


def _splitmix(seed: int, place: int) -> float:
    state = (seed + place * 0x9E3779B97F4A7C15) % 2**64
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ state >> 27) * 0x94D049BB133111EB % 2**64
    return ((state ^ state >> 31) >> 11) / 2**53
