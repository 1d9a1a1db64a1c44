"""verl's own actor on a tiny model: configuration, model, rows."""

import tests.envs.verl.cpu_platform  # noqa: F401, I001 - before anything asks verl for its platform

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import TrainingWorkerConfig
from verl.workers.engine_workers import ActorRolloutRefWorker, TrainingWorker
from verl.workers.utils.losses import ppo_loss

SYMBOLS = 32
SHARDED = {f"{name}_dtype": "fp32" for name in ("param", "reduce", "buffer")}


def tiny_model(folder: Path) -> Path:
    """A model of 32 words with a tokenizer, as verl loads one from the disk."""
    torch.manual_seed(0)
    config = Qwen2Config(
        vocab_size=SYMBOLS,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        eos_token_id=1,
        pad_token_id=0,
        bos_token_id=None,
        tie_word_embeddings=False,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(SYMBOLS)}, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w1", pad_token="w0").save_pretrained(
        folder
    )
    return folder


def actor_config(
    config: DictConfig, model: Path, *, strategy: str = "fsdp2", packed: bool = True, lora: int = 4
) -> DictConfig:
    """verl's defaults with this model, in float32."""
    mine = deepcopy(config)
    its = mine.actor_rollout_ref
    its.model.path = str(model)
    its.model.lora_rank, its.model.lora_alpha = lora, 2 * lora
    its.model.target_modules = "all-linear"
    its.model.use_remove_padding = packed
    its.model.override_config = {"attn_implementation": "sdpa"}
    its.actor.strategy = its.actor.fsdp_config.strategy = strategy
    its.actor.fsdp_config.use_torch_compile = False
    its.actor.fsdp_config.mixed_precision = SHARDED
    its.actor.ppo_micro_batch_size_per_gpu = 2
    its.rollout.log_prob_micro_batch_size_per_gpu = 2
    its.actor.optim.lr = 1e-2
    its.actor.optim.total_training_steps = 10
    return mine


def worker_of(config: DictConfig) -> TrainingWorker:
    """As ``ActorRolloutRefWorker.init_model`` makes the actor."""
    its = config.actor_rollout_ref
    model = omega_conf_to_dataclass(its.model)
    actor = omega_conf_to_dataclass(its.actor)
    actor.model_config = model
    made = TrainingWorkerConfig(
        model_type="language_model",
        model_config=model,
        engine_config=actor.engine,
        optimizer_config=actor.optim,
        checkpoint_config=actor.checkpoint,
    )
    made.engine_config.use_dynamic_bsz = False
    made.engine_config.infer_micro_batch_size_per_gpu = 2
    made.engine_config.micro_batch_size_per_gpu = its.actor.ppo_micro_batch_size_per_gpu
    torch.manual_seed(0)  # the adapter's first weights are random
    worker = TrainingWorker(made)
    worker.reset()
    worker.set_loss_fn(partial(ppo_loss, config=actor))
    return worker


class CPUActor(ActorRolloutRefWorker):
    """verl's worker; it asks for a process group that the CPU has no name for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo")
        super().__init__(*args, **kwargs)


def jagged(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)


def columns(rows: int, seed: int = 1) -> dict[str, torch.Tensor]:
    """Ragged rows of random words, as the agent loop leaves them in the TransferQueue."""
    random = torch.Generator().manual_seed(seed)

    def words(low: int, high: int) -> list[torch.Tensor]:
        sizes = torch.randint(low, high, (rows,), generator=random).tolist()
        return [torch.randint(2, SYMBOLS, (size,), generator=random) for size in sizes]

    prompts, responses = words(2, 5), words(3, 9)
    both = list(zip(prompts, responses, strict=True))
    return {
        "prompts": jagged(prompts),
        "responses": jagged(responses),
        "input_ids": jagged([torch.cat(pair) for pair in both]),
        "position_ids": jagged([torch.arange(len(a) + len(b)) for a, b in both]),
        "loss_mask": jagged(
            [torch.cat([torch.zeros_like(a), torch.ones_like(b)]) for a, b in both]
        ),
        "response_mask": jagged([torch.ones_like(one) for one in responses]),
    }


def batch_of(data: dict[str, Any], **settings: Any) -> Any:
    """A batch for a worker, with the settings that verl's trainer gives it."""
    known = {"temperature": 0.7, "calculate_entropy": True, "compute_loss": True}
    return tu.get_tensordict(dict(data), non_tensor_dict=known | settings)
