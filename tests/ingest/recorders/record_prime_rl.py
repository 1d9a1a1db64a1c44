"""prime-rl's traces, token exports and metrics, by its own monitor, converter and exporter.

prime-rl is not on the package index: `PYTHONPATH=<a checkout>/src:<a checkout>/packages/
prime-rl-configs/src python tests/ingest/recorders/record_prime_rl.py`, with verifiers==0.3.1 and
what its trainer imports. Episodes and log-probabilities are made up here; advantages, samples (one
per branch of a trace) and files are prime-rl's.
"""

import asyncio
import random
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

# ruff: noqa: E402 -- these come first: imported on the way, for a dashboard that nobody opens here
for _name in (
    "wandb_gql",
    *("wandb_workspaces" + part for part in ("", ".reports", ".workspaces")),
):
    sys.modules[_name] = MagicMock()
sys.modules["wandb_workspaces.reports.v2"] = sys.modules["wandb_workspaces"]

import torch
import verifiers.v1 as vf
from prime_rl.configs.monitors import FileMonitorConfig
from prime_rl.configs.trainer import DefaultLossConfig
from prime_rl.monitors.file import FileMonitor
from prime_rl.orchestrator.algo.routing import assign_advantages
from prime_rl.orchestrator.trajectories import trace_to_samples
from prime_rl.trainer.rl.token_export import TokenExporter
from verifiers.v1.episode import EvalWorkInfo, GroupInfo, TrainRunInfo, TrainWorkInfo
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, ModelCall, Reward, TraceTask
from written import fresh, written

DRAW = random.Random(0)


def node(role: str, text: str, parent: int | None, **more: Any) -> MessageNode:
    sampled = role == "assistant"
    ids = [DRAW.randrange(3, 99) for _ in range(3 + len(text) % 5)]
    mask = [False] + [sampled] * (len(ids) - 1)  # an answer begins with the prompt's scaffold
    return MessageNode.model_validate(
        {
            "parent": parent,
            "message": {"role": role, "content": text},
            "sampled": sampled,
            "timestamp": 0.0,
            "token_ids": ids,
            "mask": mask,
            "logprobs": [-DRAW.random() for _ in range(sum(mask))],
            **more,
        }
    )


def trace(
    name: str, reward: float, *, turns: int = 1, fork: bool = False, trainable: bool = True
) -> Any:
    nodes = [node("user", f"as {name}: 2+3?", None)]
    calls = []
    for turn in range(turns):
        nodes.append(node("assistant", f"{name} says \\boxed{{5}} {turn}", len(nodes) - 1))
        stop = "length" if DRAW.random() < 0.3 else "stop"
        calls.append(ModelCall(node=len(nodes) - 1, finish_reason=stop))
        if turn + 1 < turns:
            nodes.append(node("user", "go on", len(nodes) - 1))
    if fork:  # a second answer to the first question: another branch of the same trace
        nodes.append(node("assistant", f"{name} tries \\boxed{{6}}", 0))
        calls.append(ModelCall(node=len(nodes) - 1, finish_reason="stop"))
    calls.insert(0, ModelCall(node=None))  # a call that failed committed nothing
    return vf.Trace(
        task=_task(),
        agent=AgentInfo.model_construct(config=None, name=name, trainable=trainable),
        nodes=nodes,
        calls=calls,
        rewards={"exact": Reward(score=reward, weight=1.0), "style": None},
        is_completed=True,
        ok=True,
    )


def _task() -> Any:
    data = vf.TaskData(idx=0, prompt="2+3?")
    return TraceTask(type="Sum", data=data, key="sum-0")


def episode(group: str, number: int, step: int, kind: str = "train") -> Any:
    won = float(DRAW.random() < 0.6)
    traces = [
        trace("solver", won, turns=2, fork=number == 1),
        trace("judge", 1.0 - won),
        trace("user", 0.0, trainable=False),
    ]
    work = TrainWorkInfo(step=step) if kind == "train" else EvalWorkInfo(step=step)
    return vf.Episode(
        id=f"{group}-{number}-{step}",
        task=_task(),
        group=GroupInfo(id=group),
        run=TrainRunInfo(id="r", work=work),
        ok=True,
        traces=traces,
    )


def export(exporter: TokenExporter, step: int, episodes: list[Any]) -> None:
    """Two samples to a micro-batch, as the packer lays them, with padding at its end."""
    samples = [
        one
        for each in episodes
        for part in each.traces
        if part.agent.trainable
        for one in trace_to_samples(part, env_name="sum")
    ]
    for micro in range(0, len(samples), 2):
        pair = samples[micro : micro + 2]
        sizes = [len(one.token_ids) for one in pair]
        pad = 2

        def column(values: Any, fill: Any, pair: Any = pair, pad: int = pad) -> Any:
            flat = [value for one in pair for value in values(one)]
            return torch.tensor([flat + [fill] * pad])

        inference = column(lambda one: one.logprobs, 0.0)
        exporter.export(
            step, micro // 2,
            {
                "input_ids": column(lambda one: one.token_ids, 0),
                "position_ids": column(lambda one: range(len(one.token_ids)), 0),
                "loss_mask": column(lambda one: one.mask, False),
                "advantages": column(lambda one: one.advantages or [0.0] * len(one.mask), 0.0),
                "inference_logprobs": inference,
                "env_names": ["sum"] * sum(sizes) + [""] * pad,
            },
            {"logprobs": inference - 0.1 * step, "entropy": torch.full_like(inference, 0.5)},
            [*sizes[:-1], sizes[-1] + pad], DefaultLossConfig(),
        )  # fmt: skip
    exporter.mark_stable()


async def run(folder: Path) -> None:
    monitor = FileMonitor(FileMonitorConfig())
    await monitor.init(folder)
    exporter = TokenExporter(folder, rank=0)
    for step in (1, 2, 3):
        episodes = [episode(f"g{group}", number, step) for group in range(2) for number in range(2)]
        for one in episodes:
            for part in one.traces:
                if part.agent.trainable:
                    assign_advantages(part, part.reward - 0.5)
        await monitor.log(episodes, step, "train", "all")
        await monitor.log(episodes[:3], step, "train", "effective")
        await monitor.log([episode("e", 0, step, "eval")], step, "eval", "all")
        export(exporter, step, episodes[:3])
        await monitor.log(
            {"entropy/all/mean": 0.5, "optim/grad_norm": 0.1, "bad": float("nan")}, step
        )
        await monitor.log({"reward/all/mean": 0.5}, step)
    await monitor.finalize()


def main() -> None:
    folder = fresh("prime-rl")
    asyncio.run(run(folder))
    how = f"FileMonitor, trace_to_samples, TokenExporter with verifiers {version('verifiers')}"
    written("prime-rl", "prime-rl 559b447", how)


if __name__ == "__main__":
    main()
