"""A tiny model, a dataset with roles, and trainers of TRL around them: what the TRL tests share."""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig
from roledrift_trl import RoleDriftCallback
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer, RLOOConfig, RLOOTrainer

from roledrift.records import StepRecord
from roledrift.store.reader import open_run

WORDS = ["<pad>", "<eos>", "<unk>", "gen", "agg", "a", "b", "c"]
PAIR = {"generator": 1, "aggregator": 1}
WRAPPED = (
    "_generate_and_score_completions",
    "_calculate_rewards",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
    "log",
)
TRAINERS: dict[str, tuple[Any, Any]] = {
    "grpo": (GRPOTrainer, GRPOConfig),
    "rloo": (RLOOTrainer, RLOOConfig),
}
ON_GPU = os.environ.get("ROLEDRIFT_TRL_TESTS") == "gpu"
torch.set_num_threads(1)
if ON_GPU:  # otherwise two trainings add in different orders, monitored or not
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True, warn_only=True)


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>"
    )


def tiny_model(vocabulary: int = len(WORDS), *, layers: int = 1) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        pad_token_id=0,
        eos_token_id=1,
        tie_word_embeddings=False,
    )
    # Logits of some size, so that temperature matters and updates are visible.
    model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight.mul_(8)
    return model


def tiny_dataset() -> Dataset:
    return Dataset.from_list(
        [
            {"prompt": f"{word} {x} {y}", "role": role, "copy": "abc".index(x)}
            for x in "abc"
            for y in "abc"
            for word, role in (("gen", "generator"), ("agg", "aggregator"))
        ]
    )


class Seen:
    """A reward function that remembers what it was given."""

    def __init__(self) -> None:
        self.calls: list[list[dict[str, Any]]] = []

    __name__ = "seen"

    def __call__(self, prompts: Any, completion_ids: Any, role: Any, **_: Any) -> list[float]:
        rewards = [float(sum(i % 3 == 0 for i in ids)) for ids in completion_ids]
        self.calls.append(
            [
                {"prompt": p, "ids": list(i), "role": r, "reward": w}
                for p, i, r, w in zip(prompts, completion_ids, role, rewards, strict=True)
            ]
        )
        return rewards


def scripted(length: Callable[[str, int], int]) -> Callable[..., dict[str, list[Any]]]:
    """A ``rollout_func`` whose answers are as long as they are told to be, by role and step."""

    def rollout(prompts: list[str], trainer: GRPOTrainer) -> dict[str, list[Any]]:
        step = trainer.state.global_step
        random = Random(100 * step + trainer.accelerator.process_index)
        roles = ["aggregator" if one.startswith("agg") else "generator" for one in prompts]
        ids = [[*random.choices((5, 6, 7), k=length(role, step) - 1), 1] for role in roles]
        return {
            "prompt_ids": trainer.processing_class(prompts)["input_ids"],
            "completion_ids": ids,
            "logprobs": [[-1.0] * len(one) for one in ids],
        }

    return rollout


def make_trainer(out: Path, callbacks: list[Any], **changes: Any) -> GRPOTrainer:
    kind = changes.pop("kind", "grpo")
    parts: dict[str, Any] = {
        "model": changes.pop("model", None) or tiny_model(),
        "train_dataset": changes.pop("train_dataset", None) or tiny_dataset(),
        "reward_funcs": changes.pop("reward", None) or Seen(),
        "eval_dataset": changes.pop("eval_dataset", None),
    }
    parts["processing_class"] = changes.pop("processing_class", None) or tiny_tokenizer()
    for name in {"rollout_func", "tools", "environment_factory"} & changes.keys():
        parts[name] = changes.pop(name)
    dropout = changes.pop("lora_dropout", 0.0)
    if changes.pop("lora", True):
        parts["peft_config"] = LoraConfig(
            r=4, target_modules="all-linear", lora_dropout=dropout, lora_alpha=16
        )
    settings: dict[str, Any] = {
        "output_dir": str(out / "trainer"),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 8,
        "max_steps": 3,
        "logging_steps": 1,
        "learning_rate": 3e-3,
        "lr_scheduler_type": "constant",
        "use_cpu": not ON_GPU,
        "bf16": False,
        "report_to": "none",
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        **changes,
    }
    return TRAINERS[kind][0](
        args=TRAINERS[kind][1](**settings),
        callbacks=callbacks,
        **parts,
    )


def watched(out: Path, **changes: Any) -> tuple[GRPOTrainer, list[StepRecord]]:
    facts = {name: changes.pop(name, None) for name in ("config", "accuracy")}
    callback = RoleDriftCallback(PAIR, out / "run", **facts)
    trainer = make_trainer(out, [callback, *changes.pop("callbacks", [])], **changes)
    trainer.train()
    return trainer, open_run(out / "run").steps()


def trace(trainer: GRPOTrainer) -> str:
    """Hash of losses, gradient norms, final weights and the state of the random numbers."""
    kept = ("loss", "grad_norm", "entropy", "reward", "eval_loss", "kl", "train_loss")
    rows = [
        [(name, repr(row[name])) for name in kept if name in row]
        for row in trainer.state.log_history
    ]
    digest = hashlib.sha256(json.dumps(rows).encode())
    for name, value in sorted(trainer.model.state_dict().items()):
        digest.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    states = [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if ON_GPU else ())]
    for state in states:
        digest.update(state.numpy().tobytes())
    return digest.hexdigest()


def token_logps(model: Any, prompt: list[int], ids: list[int], temperature: float) -> torch.Tensor:
    with torch.no_grad():
        logits = model(torch.tensor([prompt + ids], device=model.device)).logits[0].cpu()
    logp = torch.log_softmax(logits[len(prompt) - 1 : -1] / temperature, dim=-1)
    return logp[torch.arange(len(ids)), torch.tensor(ids)]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
