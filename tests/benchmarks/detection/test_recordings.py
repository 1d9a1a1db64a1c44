import math
from pathlib import Path

from benchmarks.detection.recordings import DIGITS, load, record, rounded
from reference_trainer.config import load as load_config
from reference_trainer.setup import prepare
from reference_trainer.trainer import train
from roledrift.store.reader import open_run


def test_a_run_comes_back_up_to_the_stated_rounding(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    config = load_config("tiny-smoke", {"seed": 4})
    train(prepare(config, cache=cache), out=tmp_path / "run")
    record(tmp_path / "run", "smoke", 4, folder=tmp_path, base=2)
    found = load("smoke", 4, tmp_path, base=2)
    stored = open_run(tmp_path / "run")
    assert found.workflow == stored.header.workflow
    assert list(found.steps) == [rounded(one) for one in stored.steps()]
    assert [rounded(one) for one in found.steps] == list(found.steps)
    assert sorted(found.validation) == [0, 2, 3]
    assert found.problems == 8
    assert (found.base, len(found.solved_before)) == (2, 8)
    assert {role: len(shares) for role, shares in found.terse.items()} == {
        "generator": 3,
        "aggregator": 3,
    }
    assert [bool(one.base) for one in found.steps] == [True, False, False]
    assert [len(one.solved) for one in found.steps] == [0, 8, 8]
    for mine, its in zip(found.steps, stored.steps(), strict=True):
        assert mine.step == its.step
        assert not any("/" in group for group in mine.groups)
        for group, stats in mine.groups.items():
            for name, stat in stats.items():
                whole = its.groups[group][name].mean
                same = math.isclose(stat.mean, whole, rel_tol=10 ** (1 - DIGITS), abs_tol=0)
                assert same or stat.mean == whole or math.isnan(whole)
        assert mine.totals.keys() == its.totals.keys()
        assert len(mine.gradients) == len(its.gradients)
    assert {one.role for one in found.samples} == {"generator", "aggregator"}
