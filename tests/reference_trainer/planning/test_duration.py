from dataclasses import replace

import pytest

from reference_trainer.grid import load_source
from reference_trainer.planning.duration import duration
from reference_trainer.planning.gpu import Gpu, Lengths, memory_of
from reference_trainer.planning.shapes import trained
from reference_trainer.planning.step_on_shapes import operations

CONFIG = load_source("paper/voting-ip-math-0.6B", {})
GPU = Gpu(memory_of("80GB"), tokens_per_second=10_000.0)
LENGTHS = Lengths(question=200, output=0.5)


def test_tokens_and_seconds_by_hand() -> None:
    work = duration(CONFIG, GPU, LENGTHS)
    generator, aggregator = work.roles["generator"], work.roles["aggregator"]
    assert (generator.rows, generator.prompt, generator.output) == (1536, 200, 2560)
    assert (aggregator.rows, aggregator.prompt, aggregator.output) == (512, 200 + 3 * 2560, 2560)
    assert work.sampled == 2048 * 2560
    assert work.seconds["sampling"] == pytest.approx(2048 * 2560 / 10_000)
    # 512 problems once, every tenth iteration; an iteration plays 512 episodes.
    assert work.seconds["validation"] == pytest.approx(work.seconds["sampling"] / 10)
    done = 0.0
    for one in work.roles.values():
        forward, backward = operations(trained(CONFIG), one.prompt + one.output, one.output)
        done += one.rows * (2 * forward + backward)  # old log-probabilities are computed too
    assert work.operations == pytest.approx(done)
    assert work.seconds["update"] == pytest.approx(done / (989e12 * 0.1))


def test_devices_share_the_work() -> None:
    alone, eight = duration(CONFIG, GPU, LENGTHS), duration(CONFIG, replace(GPU, count=8), LENGTHS)
    assert eight.total == pytest.approx(alone.total / 8)


def test_prompts_are_never_longer_than_the_limit() -> None:
    config = load_source("paper/voting-ip-math-0.6B", {"rules": {"max_prompt_tokens": 5000}})
    assert duration(config, GPU, Lengths(200, 1.0)).roles["aggregator"].prompt == 5000


def test_the_pace_follows_the_bandwidth() -> None:
    estimated = replace(GPU, tokens_per_second=None)
    slow = duration(CONFIG, estimated, LENGTHS).tokens_per_second
    fast = duration(CONFIG, replace(estimated, bandwidth=6.7), LENGTHS).tokens_per_second
    assert fast == pytest.approx(2 * slow)
    assert 1_000 < slow < 50_000
