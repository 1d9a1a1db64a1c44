"""The loss against TRL's own code: the same model, rows, old log-probabilities and advantages."""

import math
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from torch import Tensor
from trl import GRPOConfig, GRPOTrainer

from reference_trainer.episodes import Parse, Span
from reference_trainer.grpo import Aggregation, Clip, Whole, aggregate, clipped_loss
from reference_trainer.interventions import anchor
from reference_trainer.pretrain import load_base
from reference_trainer.scoring import Batch, collate, score

LIMIT, TEMPERATURE = 9, 0.8
PAIRS: dict[str, Aggregation] = {
    "grpo": "seq-mean-token-mean",
    "bnpo": "token-mean",
    "dapo": "token-mean",
    "dr_grpo": "constant",
    "luspo": "seq-mean-token-sum",
}


def span(i: int) -> Span:
    ids = tuple(1 + (i * 7 + k) % 20 for k in range(2 + 2 * (i % 4)))
    return Span(
        *(i // 2, i % 2, "generator", 0, 0, "p", (5, 6, 7, 8)[: 2 + i % 3], ids),
        *((-2.0,) * len(ids), "stop", "", Parse("failed", None), None, 0.0, 1.5 * (-0.8) ** i),
    )


BATCH = collate([span(i) for i in range(6)], pad_id=0)


def old_logps(now_BC: Tensor) -> Tensor:
    """Far enough from the current ones that every branch of the clip is taken."""
    noise = torch.randn(now_BC.shape, generator=torch.Generator().manual_seed(3))
    return (now_BC - 0.8 * noise) * BATCH.mask_BC


def trl_loss(
    folder: Path, scratch: Path, loss_type: str, beta: float
) -> tuple[float, list[Tensor]]:
    model, tokenizer = load_base(folder)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=GRPOConfig(
            output_dir=str(scratch),
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=6,
            num_generations=2,
            max_completion_length=LIMIT,
            temperature=TEMPERATURE,
            loss_type=loss_type,
            epsilon=0.2,
            epsilon_high=0.28,
            delta=3.0,
            beta=beta,
            use_bias_correction_kl=False,
            report_to=[],
        ),
        train_dataset=Dataset.from_list([{"prompt": " <gen>"}] * 6),
        processing_class=tokenizer,
    )
    prompts = [one.prompt_ids for one in BATCH.spans]
    width = max(map(len, prompts))
    with torch.no_grad():
        now_BC = score(model, BATCH, temperature=TEMPERATURE).logp_BC
    inputs = {
        "prompt_ids": torch.tensor([[0] * (width - len(ids)) + list(ids) for ids in prompts]),
        "prompt_mask": torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts]),
        "completion_ids": BATCH.target_BC,
        "completion_mask": BATCH.mask_BC.long(),
        "advantages": BATCH.advantage_B,
        "old_per_token_logps": old_logps(now_BC),
        "ref_per_token_logps": now_BC - 0.3,
        "num_items_in_batch": BATCH.mask_BC.sum(),
    }
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = 1
    loss = trainer._compute_loss(trainer.model, inputs)
    torch.autograd.backward(loss)
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return float(loss.detach()), gradients


def our_loss(folder: Path, by: Aggregation, beta: float) -> tuple[float, list[Tensor]]:
    model, _ = load_base(folder)
    model.train()
    new_BC = score(model, BATCH, temperature=TEMPERATURE).logp_BC
    tokens = clipped_loss(
        new_BC,
        old_logps(new_BC.detach()),
        advantage_B=BATCH.advantage_B,
        mask_BC=BATCH.mask_BC,
        clip=Clip(),
    )
    assert tokens.clipped_BC.any()
    values_BC = tokens.values_BC
    if beta:
        values_BC = values_BC + beta * anchor(new_BC, new_BC.detach() - 0.3)
    loss = aggregate(values_BC, BATCH.mask_BC, by=by, size=_whole(BATCH))
    torch.autograd.backward(loss)
    gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    return float(loss.detach()), gradients


def _whole(batch: Batch) -> Whole:
    return Whole(rows=len(batch.spans), tokens=int(batch.mask_BC.sum()), limit=LIMIT)


@pytest.mark.parametrize("loss_type", [*PAIRS, "grpo with a reference"])
def test_loss_and_gradient_are_those_of_trl(
    base_folder: Path, tmp_path: Path, loss_type: str
) -> None:
    name, _, anchored = loss_type.partition(" ")
    beta = 0.5 if anchored else 0.0
    theirs, their_gradients = trl_loss(base_folder, tmp_path, name, beta)
    ours, our_gradients = our_loss(base_folder, PAIRS[name], beta)
    assert ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    size = math.sqrt(sum(float(one.square().sum()) for one in their_gradients))
    pairs = zip(our_gradients, their_gradients, strict=True)
    off = math.sqrt(sum(float((a - b).square().sum()) for a, b in pairs))
    assert size > 0.01
    assert off < 1e-4 * size
