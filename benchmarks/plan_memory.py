"""The planner's memory beside what the trainer's own update allocates, on the CPU.

``python -m benchmarks.plan_memory`` makes one update of rows of full length for each of some small
models, padded and packed, with and without gradient checkpointing, in float32 and bfloat16. The
measured side is the most that torch's allocator had given out at any time, as its profiler reports
it; the planned side knows only the configuration. Results go to ``benchmarks/out/``.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, Qwen3Config
from transformers.utils import logging

from reference_trainer.config import Config, load
from reference_trainer.episodes import Parse, Span
from reference_trainer.planning.gpu import Gpu, memory_of
from reference_trainer.planning.memory import memory
from reference_trainer.policies import AdapterBank
from reference_trainer.updating import update_policy

OUT = Path(__file__).parent / "out" / "plan_memory.json"

CASES: dict[str, dict[str, Any]] = {
    "padded": {},
    "padded, several rows": {"train": {"microbatch": 4}},
    "padded, checkpointed": {"model": {"gradient_checkpointing": True}},
    "packed": {"train": {"microbatch": 4, "packed": True}},
    "packed, checkpointed": {
        "train": {"microbatch": 4, "packed": True},
        "model": {"gradient_checkpointing": True},
    },
    "padded, eager attention": {"model": {"attention": "eager"}},
    "padded, bfloat16": {"model": {"dtype": "bfloat16"}},
    "checkpointed, bfloat16": {"model": {"dtype": "bfloat16", "gradient_checkpointing": True}},
}


def case(folder: Path, settings: dict[str, Any], *, tokens: int = 384) -> Config:
    """A run on a small Qwen3 whose configuration is written into ``folder``."""
    small = Qwen3Config(
        vocab_size=4096,
        hidden_size=128,
        num_hidden_layers=4,
        intermediate_size=384,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        pad_token_id=0,
    )
    small.save_pretrained(folder)
    common: dict[str, Any] = {
        "workflow": "single",
        "routing": "shared",
        "model": {"path": str(folder), "device": "cpu"},
        "lora": {"rank": 16},
        "rollout": {"problems": 2, "copies": 4, "max_new_tokens": tokens // 3},
        "rules": {"max_prompt_tokens": tokens - tokens // 3},
        "train": {"microbatch": 1, "old_logps": "trainer", "minibatch": 8},
        "monitor": {"enabled": False},
    }
    config = load("voting-ip-healthy", common)
    return replace(
        config,
        model=replace(config.model, **settings.get("model", {})),
        train=replace(config.train, **settings.get("train", {})),
    )


def planned(config: Config) -> int:
    """Bytes of an update, by the planner."""
    return memory(config, Gpu(memory_of("80GB"))).total("update")


def measured(config: Config) -> int:
    """Most bytes that were allocated in the second update of rows of full length."""
    base: Any = AutoModelForCausalLM.from_config(
        Qwen3Config.from_pretrained(config.model.path),
        dtype=getattr(torch, config.model.dtype),
        attn_implementation=config.model.attention,
    )
    if config.model.gradient_checkpointing:
        base.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    bank = AdapterBank(base, ("shared",), lora=config.lora, adam=config.train.adam, seed=0)
    spans = [row(config, number) for number in range(config.rollout.problems * 4)]
    update_policy(bank, spans, config=config, step=1, watch=None)
    (optimizer,) = bank.optimizers.values()
    held = list(bank.model.parameters())
    held += [tensor for state in optimizer.state.values() for tensor in state.values()]
    before = sum(tensor.numel() * tensor.element_size() for tensor in held)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        update_policy(bank, spans, config=config, step=2, watch=None)
    return before + _most(profiled)


def _most(profiled: Any) -> int:
    """Most bytes that were allocated at a time, from the trace that the profiler writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(file))
        events = json.loads(file.read_text("utf-8"))["traceEvents"]
    changes = sorted(
        (event["ts"], int(event["args"]["Bytes"]))
        for event in events
        if event.get("name") == "[memory]"
    )
    live = most = 0
    for _, change in changes:
        live += change
        most = max(most, live)
    return most


def row(config: Config, number: int) -> Span:
    """A row of full length with an advantage."""
    new, prompt = config.rollout.max_new_tokens, config.rules.max_prompt_tokens
    return Span(
        problem=number // config.rollout.copies,
        copy=number % config.rollout.copies,
        role="generator",
        slot=0,
        turn=0,
        policy="shared",
        prompt_ids=tuple(1 + (number + i) % 500 for i in range(prompt)),
        output_ids=tuple(1 + (number * 7 + i) % 500 for i in range(new)),
        logp_rollout=(-1.0,) * new,
        finish_reason="length",
        text="",
        parse=Parse("failed", None),
        correct=False,
        reward=float(number % 2),
        advantage=1.0 - 2.0 * (number % 2),
    )


def main() -> None:
    """Print and write the table."""
    torch.set_num_threads(1)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    result = {}
    print(f"{'case':28} {'planned':>10} {'measured':>10}  planned / measured")
    for name, settings in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            config = case(Path(folder), settings)
            expected, peak = planned(config), measured(config)
        result[name] = {"planned": expected, "measured": peak}
        print(
            f"{name:28} {expected / 1e6:7.1f} MB {peak / 1e6:7.1f} MB  {expected / peak:.3f}",
            flush=True,
        )
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
