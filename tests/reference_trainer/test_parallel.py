"""Two processes do what one does: the same losses, rewards, records and adapters."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils.launch import prepare_multi_gpu_env
from safetensors.torch import load_file

from reference_trainer.__main__ import main
from reference_trainer.checkpoint import checkpoints, restore
from reference_trainer.config import Config, load
from reference_trainer.run_folder import RunFolder
from reference_trainer.setup import prepare
from reference_trainer.trainer import train
from roledrift import open_run
from tests.ranks import as_rank, free_port, process, together

pytestmark = [pytest.mark.slow, pytest.mark.ranks]

# Three problems on two ranks, one canary problem for both, and mini-batches so small that a rank
# may have no row of a role.
SETTINGS: dict[str, Any] = {
    "train": {"steps": 3, "minibatch": 3, "old_logps": "trainer"},
    "rollout": {"problems": 3, "copies": 4},
    "stress": {"kind": "reward_noise", "share": 1.0},
    "checkpoint": {"every": 1},
    "interventions": {
        "kl_anchor": {"generator": 0.05},
        "coherence": {"weights": {"aggregator": 0.5}},
    },
    "monitor": {"gradients_every": 1, "options": {"sampling": {"canaries": 1}}},
}
SENSITIVE: dict[str, Any] = {
    "stop_on": ["length_inflation"],
    "options": {
        "baseline": {"window": 1},
        "detectors": {"length_inflation": {"limit": 1.0}},
    },
}


def accelerates() -> dict[str, str]:
    """What `accelerate launch` adds to the environment of its processes, as it makes it itself."""
    options = ["--use_fsdp", "--fsdp_version", "2", "--num_processes", "2", "train.py"]
    checked, *_ = _validate_launch_command(launch_command_parser().parse_args(options))
    made: dict[str, str] = prepare_multi_gpu_env(checked)
    added = {name: value for name, value in made.items() if os.environ.get(name) != value}
    assert added["ACCELERATE_USE_FSDP"] == "true"
    return added


def source_of(config: Config, out: Path) -> Path:
    source = out.with_suffix(".json")
    source.write_text(json.dumps(asdict(config), default=str))
    return source


def launched(
    rank: int, port: int, environment: Mapping[str, str], arguments: Sequence[str]
) -> tuple[int, str]:
    as_rank(rank, port)
    os.environ |= {"ROLEDRIFT_STRICT": "1", **environment}
    torch.set_num_threads(1)
    with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
        return main(arguments), said.getvalue()


def launch(
    environments: Sequence[Mapping[str, str]], config: Config, out: Path, *more: str, cache: Path
) -> str:
    """A process for each environment; torchrun itself launches those of test_grid_plans."""
    arguments = ["train", str(source_of(config, out)), "--out", str(out), "--cache", str(cache)]
    port = free_port()
    ended = together(
        launched, [(rank, port, one, [*arguments, *more]) for rank, one in enumerate(environments)]
    )
    assert [code for code, _ in ended] == [0] * len(environments), ended
    return "".join(said for _, said in ended)


def a_rank(rank: int, count: int, port: int, errors: Path, arguments: Sequence[str]) -> None:
    as_rank(rank, port, count)
    os.environ["ROLEDRIFT_STRICT"] = "1"
    torch.set_num_threads(1)
    if rank > 0:  # it has a disk without a free byte, and writes to none
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    else:
        sys.stderr = errors.open("w")
    code = main(arguments)
    sys.stderr.flush()
    # gloo's threads sometimes abort an orderly end of the interpreter.
    os._exit(code)


def fork(source: Path, out: Path, *more: str, cache: Path, count: int) -> list[Any]:
    """As a launcher starts ranks, but from one process that has imported torch."""
    arguments = ["train", str(source), "--out", str(out), "--cache", str(cache), *more]
    port, errors = free_port(), out.with_suffix(".errors")
    ranks = [process(a_rank, rank, count, port, errors, arguments) for rank in range(count)]
    for rank in ranks:
        rank.start()
    return ranks


def launch_forked(source: Path, out: Path, *more: str, cache: Path, count: int) -> None:
    ranks = fork(source, out, *more, cache=cache, count=count)
    for rank in ranks:
        rank.join(240)
    assert [rank.exitcode for rank in ranks] == [0] * count, out.with_suffix(".errors").read_text()


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All leaves of nested values, by where they are."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from numbers(below, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for i, below in enumerate(value):
            yield from numbers(below, f"{path}.{i}")
    else:
        yield path, value


def assert_same(found: Any, expected: Any, *, rel: float) -> None:
    mine, its = dict(numbers(found)), dict(numbers(expected))
    assert mine.keys() == its.keys()
    for where, value in its.items():
        if isinstance(value, float):
            assert mine[where] == pytest.approx(value, rel=rel, abs=1e-5, nan_ok=True), where
        else:
            assert mine[where] == value, where


def trace(run: Path) -> list[dict[str, Any]]:
    return [row | {"seconds": 0.0} for row in RunFolder(run).trace()]


def records(run: Path) -> list[Any]:
    return [
        {
            "step": one.step,
            "groups": {
                group: {name: asdict(value) for name, value in values.items()}
                for group, values in one.groups.items()
            },
            "totals": one.totals,
            "gradients": [asdict(gram) for gram in one.gradients],
            "rest": (one.missing, one.faults, one.labels),
        }
        for one in open_run(run).steps()
    ]


def compare(run: Path, alone: Path) -> None:
    """Two runs; sums are taken in another order, which Adam enlarges where gradients vanish."""
    assert_same(trace(run), trace(alone), rel=1e-4)
    for row, other in zip(trace(run)[1:], trace(alone)[1:], strict=True):
        for policy, report in row["policies"].items():
            assert report["loss"] == pytest.approx(other["policies"][policy]["loss"], abs=1e-5)
            assert report["grad_norm"] > 1e-2
    assert_same(records(run), records(alone), rel=3e-4)
    texts = [[asdict(one) for one in open_run(where).samples()] for where in (run, alone)]
    assert len(texts[0]) > 10
    assert_same(texts[0], texts[1], rel=1e-6)
    files = sorted((alone / "trainer" / "adapters").rglob("*.safetensors"))
    assert len(files) == 2
    for file in files:
        theirs, ours = load_file(file), load_file(run / file.relative_to(alone))
        assert ours.keys() == theirs.keys()
        off = torch.cat([(ours[name] - theirs[name]).abs().flatten() for name in ours])
        assert off.mean() < 1e-6
        assert (off > 1e-5).double().mean() < 2e-3


@pytest.fixture(scope="module")
def alone(cache: Path, base_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the runs of several processes have to be like."""
    run = tmp_path_factory.mktemp("alone") / "run"
    train(prepare(load("tiny-smoke", SETTINGS), cache=cache), out=run)
    return run


def test_on_two_nodes_and_resumed_by_three_processes(
    cache: Path, alone: Path, tmp_path: Path
) -> None:
    """Three problems and one canary: a process may have no row of a role, or none at all."""
    run = tmp_path / "two"
    config = load("tiny-smoke", SETTINGS)
    # What torchrun sets on the first and on the second of two machines with a process each.
    node = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    nodes = [{**node, "GROUP_RANK": str(number)} for number in range(2)]
    said = launch(nodes, config, run, "--set", "train.steps=2", cache=cache)
    assert said.count("2 processes, ddp") == 1  # one rank speaks
    assert [row["step"] for row in trace(run)] == [0, 1, 2]
    launch_forked(run.with_suffix(".json"), run, "--resume", cache=cache, count=3)
    compare(run, alone)


def test_a_process_that_is_killed(cache: Path, alone: Path, tmp_path: Path) -> None:
    """The others say so and end; the run goes on from its checkpoint."""
    run = tmp_path / "two"
    source = source_of(load("tiny-smoke", SETTINGS), run)
    first, second = fork(source, run, cache=cache, count=2)
    while not (run / "trainer" / "checkpoints" / "global_step_1").is_dir():
        assert first.is_alive()
        time.sleep(0.01)
    second.kill()
    first.join(60)
    assert first.exitcode == 2
    said = run.with_suffix(".errors").read_text()
    assert re.search(
        r"error: process 0 of 2 .* has lost another one, which ended or .*--resume", said
    )
    assert RunFolder(run).finished() is None
    launch_forked(source, run, "--resume", cache=cache, count=2)
    compare(run, alone)


def test_in_parts_and_stopped_by_an_alert(cache: Path, base_folder: Path, tmp_path: Path) -> None:
    config = load(
        "tiny-smoke",
        SETTINGS | {"train": SETTINGS["train"] | {"steps": 6}, "monitor": SENSITIVE},
    )
    train(prepare(config, cache=cache), out=tmp_path / "alone")
    ended = RunFolder(tmp_path / "alone").finished()
    assert ended is not None
    assert ended["stopped"]
    assert ended["steps"] < 6
    sharded = replace(config, parallel=replace(config.parallel, mode="fsdp2"))
    run = tmp_path / "two"
    said = launch([accelerates()] * 2, sharded, run, cache=cache)
    assert said.count("2 processes, fsdp2") == 1  # one rank speaks
    assert RunFolder(run).finished() == ended
    compare(run, tmp_path / "alone")
    # The checkpoint is that of any run: one process takes it up.
    setup = prepare(config, cache=cache)
    latest = checkpoints(RunFolder(run).checkpoints)
    assert restore(setup.bank, latest[max(latest)]).step == ended["steps"]
    setup.served.check()
    assert all(one.state for one in setup.bank.optimizers.values())
