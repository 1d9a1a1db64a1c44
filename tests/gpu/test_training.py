import json
import os
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.fsdp import FSDPModule

from reference_trainer.config import Config
from reference_trainer.planning.gpu import Gpu
from reference_trainer.planning.memory import memory
from reference_trainer.setup import prepare
from reference_trainer.trainer import Result, train
from reference_trainer.updating import update_policy
from tests.gpu.conftest import DEVICE, ON_CPU, needs
from tests.ranks import free_port

if not (ON_CPU or torch.cuda.is_available()):
    pytest.skip("no GPU here: torch finds no CUDA device", allow_module_level=True)


def run(config: Config, out: Path | None) -> Result:
    return train(prepare(config, cache=Path("unused")), out=out)


def losses(result: Result) -> list[float]:
    return [one.loss for report in result.steps for one in report.policies.values()]


def read_steps(folder: Path) -> list[dict[str, Any]]:
    (file,) = folder.glob("steps.*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines() if '"step"' in line]


def test_a_monitored_run_trains_as_one_without(
    config: Config, tmp_path: Path, deterministic: None
) -> None:
    plain = replace(config, monitor=replace(config.monitor, enabled=False))
    assert losses(run(config, tmp_path / "a")) == losses(run(plain, tmp_path / "b"))
    records = read_steps(tmp_path / "a")
    assert [record["step"] for record in records] == [1, 2]
    assert records[0]["gradients"], "gradients of roles are measured"
    assert not any(record.get("faults") for record in records)


@pytest.mark.parametrize(
    "attention", ["sdpa", pytest.param("flash_attention_2", marks=needs("flash_attn"))]
)
def test_packed_rows_train_as_padded_ones(config: Config, attention: str) -> None:
    model = replace(config.model, attention=attention)
    padded = run(replace(config, model=model), None)
    packed = run(replace(config, model=model, train=replace(config.train, packed=True)), None)
    # The same rows in the first iteration; in bfloat16 they differ by its rounding.
    first = len(padded.steps[0].policies)
    tolerance = 1e-5 if ON_CPU else 2e-2
    assert losses(packed)[:first] == pytest.approx(losses(padded)[:first], abs=tolerance)


@pytest.mark.skipif(ON_CPU, reason="CUDA counts its bytes")
def test_the_plan_is_what_an_update_allocates(config: Config) -> None:
    from benchmarks.plan_memory import row

    config = replace(config, rollout=replace(config.rollout, problems=4, max_new_tokens=512))
    setup = prepare(config, cache=Path("unused"))
    rows = [replace(row(config, i), policy="generator") for i in range(16)]
    for step in (1, 2):
        torch.cuda.reset_peak_memory_stats()
        update_policy(setup.bank, rows, config=config, step=step, watch=None)
    planned = memory(config, Gpu(80 << 30)).total("update")
    assert torch.cuda.max_memory_allocated() == pytest.approx(planned, rel=0.15)


@needs("vllm")
def test_vllm_serves_what_is_trained(config: Config, tmp_path: Path) -> None:
    vllm = replace(config.rollout.vllm, eager=True, sleep=not ON_CPU)
    rollout = replace(config.rollout, engine="vllm", vllm=vllm)
    run(replace(config, rollout=rollout), tmp_path)  # every hand-over is proved, or the run ends
    assert [record["step"] for record in read_steps(tmp_path)] == [1, 2]


GROUP_OF_ONE = """
import json, sys
from dataclasses import replace
from pathlib import Path
from reference_trainer.config import load
from reference_trainer.parallel import joined
from reference_trainer.setup import prepare
from reference_trainer.trainer import train
config = load(sys.argv[1])
with joined(replace(config.parallel, mode=sys.argv[2])) as ranks:
    steps = train(prepare(config, cache=Path("unused"), ranks=ranks), out=None).steps
losses = [one.loss for report in steps for one in report.policies.values()]
Path(sys.argv[3]).write_text(json.dumps(losses))
"""


@pytest.mark.parametrize(
    "mode",
    [
        "ddp",
        pytest.param(
            "fsdp2",
            marks=pytest.mark.skipif(
                not hasattr(FSDPModule, "reset_iter_state"), reason="this torch is too old for it"
            ),
        ),
    ],
)
def test_a_group_of_one_process_trains_as_none(config: Config, tmp_path: Path, mode: str) -> None:
    """On one GPU, NCCL serves one process only: its calls are made, nothing is added."""
    source, written = tmp_path / "config.json", tmp_path / "losses.json"
    source.write_text(json.dumps(asdict(config)))
    environment = os.environ | {"RANK": "0", "WORLD_SIZE": "1", "OMP_NUM_THREADS": "1"}
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    line = [sys.executable, "-c", GROUP_OF_ONE, str(source), mode, str(written)]
    subprocess.run(line, check=True, env=environment, timeout=300)
    grouped, alone = json.loads(written.read_text()), losses(run(config, None))
    assert grouped[:2] == pytest.approx(alone[:2], abs=1e-5 if ON_CPU else 2e-2)


@pytest.mark.skipif(not ON_CPU and torch.cuda.device_count() < 2, reason="NCCL needs two GPUs")
def test_two_processes_train_as_one(config: Config, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(asdict(config)))
    line = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    line += ["-m", "reference_trainer", "train", str(file), "--out", str(tmp_path / "two")]
    subprocess.run(line, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=600)
    alone = losses(run(config, tmp_path / "one"))
    trace = (tmp_path / "two" / "trainer" / "trace.jsonl").read_text().splitlines()
    steps = [json.loads(text) for text in trace[1:]]
    two = [one["loss"] for report in steps for one in report["policies"].values()]
    assert two[:2] == pytest.approx(alone[:2], abs=1e-5 if DEVICE == "cpu" else 2e-2)
