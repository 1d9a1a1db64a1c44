"""An engine on the CPU: the words come from a script, their log-probabilities from the model.

An untrained model says nothing that a workflow could read. The script answers as a model of the
reference trainer would, in its vocabulary, rightly or wrongly by chance.
"""

import random
import re
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM
from verl.workers.rollout.replica import TokenOutput

from reference_trainer.episodes import FinishReason
from reference_trainer.rollout.engine import Completion
from reference_trainer.tasks.math import evaluate_left, parse_chain
from reference_trainer.tiny_model import END, build_model, build_tokenizer

_QUESTION = re.compile(r" Q:((?: [-+*0-9](?= ))+)")
_TAG = re.compile(r"<(gen|agg|eval|rev|orch|work|syn)>")


def tiny_qwen3(folder: Path) -> Path:
    """A Qwen3 of 58 k parameters with its tokenizer, as verl loads one from the disk."""
    torch.manual_seed(0)
    build_model("S").save_pretrained(folder)
    tokenizer = build_tokenizer()
    tokenizer.add_tokens(["\n", "<|im_end|>"])  # verl asks a Qwen for them; nobody says them
    tokenizer.save_pretrained(folder)
    return folder


def answer(prompt: str, chance: random.Random) -> str:
    """What the role that the prompt asks last says, without the end token."""
    match _TAG.findall(prompt)[-1]:
        case "agg":
            return f" so \\boxed{{ {chance.choice('1123')} }}"
        case "eval":
            return chance.choice([" \\boxed{ Correct }", " flaw \\boxed{ Incorrect }"])
        case "orch":
            plan = " STRATEGY 1 : left STRATEGY 2 : right"
            return chance.choice([plan, plan, plan[:18], " so"])
    asked = _QUESTION.search(prompt)
    assert asked is not None, prompt
    right = evaluate_left(*parse_chain(asked[1]))
    said = chance.choice([right, right, (right + 1) % 10])
    # The last one runs into the length limit.
    return f"{chance.choice(['', ' so left', ' so left', ' hmm' * 8])} \\boxed{{ {said} }}"


class ScriptedEngine:
    """Answers by the script; usable by the reference trainer's player as it is.

    Args:
        model: Folder of the model and its tokenizer.
        temperature: Of the log-probabilities.
        longest: Most tokens of an answer.
        by_prompt: The same prompt always gets the same answer, whoever asks when.
    """

    def __init__(
        self, model: Path, *, temperature: float, longest: int, by_prompt: bool = False
    ) -> None:
        torch.set_num_threads(1)
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self.tokenizer = build_tokenizer()
        self.temperature, self.longest, self.by_prompt = temperature, longest, by_prompt
        self.asked = 0
        self.continuous, self.has_copy = False, True
        self.answered: dict[int, Completion] = {}

    def completion(self, prompt_ids: list[int]) -> Completion:
        self.asked += 1
        prompt = self.tokenizer.decode(prompt_ids)
        chance = random.Random(prompt if self.by_prompt else self.asked)
        ids = self.tokenizer(answer(prompt, chance) + END)["input_ids"][: self.longest]
        with torch.no_grad():
            logits = self.model(torch.tensor([[*prompt_ids, *ids]])).logits[0, -len(ids) - 1 : -1]
        logp = torch.log_softmax(logits.float() / self.temperature, -1)
        logps = logp[torch.arange(len(ids)), torch.tensor(ids)]
        reason: FinishReason = "stop" if ids[-1] == self.tokenizer.eos_token_id else "length"
        return Completion(tuple(ids), tuple(logps.tolist()), reason)

    def sync(self, policies: Any) -> None:
        """There is one model."""

    def rest(self) -> None:
        """It has nothing to give back."""

    def submit(self, requests: Any) -> None:
        self.answered |= {
            number: self.completion(list(request.prompt_ids))
            for number, request in requests.items()
        }

    def collect(self) -> dict[int, Completion]:
        answered, self.answered = self.answered, {}
        return answered


class Server:
    """What verl's client asks: the method of its servers, in a Ray actor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.engine = ScriptedEngine(*args, **kwargs)

    async def generate(
        self, request_id: str, prompt_ids: list[int], sampling_params: Any, **_: Any
    ) -> TokenOutput:
        assert sampling_params["logprobs"] is True
        made = self.engine.completion(list(prompt_ids))
        return TokenOutput(
            token_ids=list(made.output_ids),
            log_probs=list(made.logps),
            stop_reason="completed",  # whatever ended it, as verl's servers say
            extra_fields={"global_steps": 0},
        )
