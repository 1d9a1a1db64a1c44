"""TRL's own GRPO tests with the callback attached to every trainer.

    git clone --depth 1 https://github.com/huggingface/trl       # or the sources of another version
    python -m benchmarks.trl_own_tests trl/tests [--alone] [pytest arguments]

Nothing is downloaded: the tests run in a folder that holds models of random weights and a dataset
under the names which the tests ask the hub for. Tests of other models (images, mixtures of experts)
fail for want of those, with the callback and without. What passes alone must pass watched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HUB = "trl-internal-testing"
ROLES = ("generator", "aggregator")
FAULTS: Counter[str] = Counter()
STEPS: Counter[str] = Counter()


def make_models(folder: Path) -> None:
    """Models of random weights and their tokenizer, under the hub's names."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from trl import chat_template_utils

    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    words.train_from_iterator(
        [" ".join(PROMPTS)],
        trainers.BpeTrainer(vocab_size=600, special_tokens=special, initial_alphabet=alphabet),
    )
    templates = Path(chat_template_utils.__file__).parent / "chat_templates"
    for kind, family, template in (
        ("Qwen2", "-2.5", "qwen2_5.jinja"),
        ("Qwen3", "", "qwen3.jinja"),
        ("Llama", "-3.2", "qwen2_5.jinja"),
    ):
        tokenizer = transformers.PreTrainedTokenizerFast(
            tokenizer_object=words, pad_token=special[0], eos_token=special[2]
        )
        tokenizer.chat_template = (templates / template).read_text()
        for task, more in (("ForCausalLM", {}), ("ForSequenceClassification", {"num_labels": 1})):
            torch.manual_seed(0)
            config = getattr(transformers, f"{kind}Config")(
                vocab_size=len(words.get_vocab()),
                hidden_size=8,
                num_attention_heads=4,
                num_key_value_heads=2,
                num_hidden_layers=2,
                intermediate_size=32,
                pad_token_id=0,
                eos_token_id=2,
                **more,
            )
            model = getattr(transformers, f"{kind}{task}")(config)
            for part in (model, tokenizer):
                part.save_pretrained(folder / f"tiny-{kind}{task}{family}")


PROMPTS = [f"{word} is better than {other}." for word in ("Beautiful", "Flat", "Sparse", "Now")
           for other in ("ugly", "nested", "dense", "never", "right now")]  # fmt: skip


def make_dataset(folder: Path) -> None:
    """Prompts with and without roles of a conversation, in the two layouts that the tests load."""
    from datasets import Dataset

    lines = ["---", "configs:"]
    for name, prompts in (
        ("standard_prompt_only", PROMPTS),
        ("conversational_prompt_only", [[{"role": "user", "content": one}] for one in PROMPTS]),
    ):
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, rows in (("train", prompts[:17]), ("test", prompts[17:])):
            place = folder / name / f"{split}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            Dataset.from_dict({"prompt": rows}).to_parquet(str(place))
            lines += [f"  - split: {split}", f"    path: {name}/{split}.parquet"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))


def pytest_configure() -> None:
    """As a plugin: watch every trainer that is made from now on."""
    if os.environ.get("ROLEDRIFT_TRL_TESTS") != "watched":
        return
    import trl
    from roledrift_trl import RoleDriftCallback

    made = trl.GRPOTrainer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        data = kwargs.get("train_dataset")
        if data is not None:
            kwargs["train_dataset"] = data.map(
                lambda _, i: {"role": ROLES[i % 2]}, with_indices=True
            )
        callback = RoleDriftCallback(dict.fromkeys(ROLES, 1), config={"gradients": {"every": 1}})
        kwargs["callbacks"] = [*(kwargs.get("callbacks") or []), callback, Reader(callback)]
        made(self, *args, **kwargs)

    trl.GRPOTrainer.__init__ = init


def Reader(callback: Any) -> Any:  # noqa: N802 - transformers is imported only when it is needed
    """A callback that counts what the run directory says at the end."""
    from transformers import TrainerCallback

    from roledrift.store.reader import open_run

    class Counting(TrainerCallback):
        def on_train_end(self, args: Any, *_: Any, **__: Any) -> None:
            run = open_run(Path(args.output_dir) / "roledrift")
            STEPS["trainings"] += 1
            for record in run.steps():
                STEPS["steps"] += 1
                STEPS["steps with role gradients"] += bool(record.gradients)
                FAULTS.update(record.faults)

    assert callback is not None
    return Counting()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """As a plugin: what was watched, and everything that was counted as a fault."""
    terminalreporter.write_line(f"watched: {dict(STEPS)}; faults: {dict(FAULTS)}")


def main() -> int:
    """Run the tests; the exit status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", type=Path, help="the folder tests of TRL's sources")
    parser.add_argument("--alone", action="store_true", help="without the callback")
    asked, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        make_models(here / HUB)
        make_dataset(here / HUB / "zen")
        (here / "tests").mkdir()
        for name in ("__init__.py", "conftest.py", "testing_utils.py", "test_grpo_trainer.py"):
            shutil.copy(asked.tests / name, here / "tests" / name)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.trl_own_tests"]
        root = Path(__file__).parents[1]
        paths = (str(root), str(root / "integrations"), os.environ.get("PYTHONPATH", ""))
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "ROLEDRIFT_TRL_TESTS": "alone" if asked.alone else "watched",
            "HF_HUB_OFFLINE": "1",
        }
        file = "tests/test_grpo_trainer.py"
        done = subprocess.run([*command, file, *rest], cwd=here, env=env, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
