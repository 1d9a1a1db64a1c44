"""TRL's own tests of GRPO and RLOO, with the callback attached to every trainer and without it.

    git clone --depth 1 https://github.com/huggingface/trl       # or the sources of another version
    python -m benchmarks.trl_own_tests trl/tests --outcomes watched.json [pytest arguments]
    python -m benchmarks.trl_own_tests trl/tests --outcomes alone.json --alone [pytest arguments]
    python -m benchmarks.trl_own_tests --compare alone.json watched.json

Nothing is downloaded: the tests run in a folder that holds models of random weights and a dataset
under the names which the tests ask the hub for. Tests of other models (images, code from the hub)
fail for want of those, with the callback and without. What passes alone must pass watched.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

HUB = "trl-internal-testing"
FILES = ("test_grpo_trainer.py", "test_rloo_trainer.py")
ROLES = ("generator", "aggregator")
PROMPTS = (
    *("Beautiful is better than", "Explicit is", "Simple is better", "Complex"),
    *("Flat is better than", "Sparse is better", "Readability", "Special cases aren't special"),
    *("Although practicality beats", "Errors should never", "Unless explicitly"),
    *("In the face of ambiguity, refuse", "There should be one", "Although that way may not be"),
    *("Now is better than", "Although never is often", "If the implementation is hard"),
    *("If the implementation is easy", "Namespaces are one honking"),
)
"""The Zen of Python, cut; the last two are for evaluation."""
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
QWEN = 151_643
"""Number of Qwen's first special token."""
PIECES = {
    **{293: "Ġb", 314: "Ġ{", 330: 'Ġ"', 397: ">Ċ", 411: "out", 450: "de", 497: '",', 522: "</"},
    **{606: "name", 788: '":', 894: "Ġany", 927: "sh", 944: "'t", 1318: "text", 1414: "Ġknow"},
    **{1513: "Ġdon", 2765: "Ġwon", 4913: '{"', 5212: 'Ġ{"', 5392: "Ġtool", 6023: "hi"},
    **{6659: "call", 7692: "async", 9520: "step", 11248: "}}Ċ", 13477: "crement", 14172: "tool"},
    **{16252: "Ġincrement", 16370: "arguments", 17453: "Done", 22785: "_tool"},
    **{35744: "increment", 64648: "multiply", 93054: "_multiply", 95642: '"}}Ċ'},
    **{151657: "<tool_call>", 151658: "</tool_call>"},
}
"""Tokens that the tests of tools spell by their number in Qwen3's vocabulary. Only the models of
those tests have it: with so many tokens a test takes ten times as long."""
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4,
           "num_experts_per_tok": 2, "moe_intermediate_size": 32}  # fmt: skip
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "Qwen2": ("-2.5", "qwen2_5", {}),
    "Qwen3": ("", "qwen3", {}),
    "Llama": ("-3.2", "qwen2_5", {}),
    "Mistral": ("-0.2", "qwen2_5", {}),
    "Gemma2": ("", "gemma", {}),
    "Cohere2": ("", "cohere2", {}),
    "Qwen3Moe": ("", "qwen3", EXPERTS),
    "GptOss": ("", "gptoss", EXPERTS),
    "Glm4Moe": ("", "glm4moe", {**EXPERTS, "head_dim": 2}),
    "NemotronH": (
        "-nano",
        "nemotron_3_nano",
        {
            **EXPERTS,
            "hidden_size": 16,
            "num_hidden_layers": None,
            "layers_block_type": ["mamba", "attention", "moe"],
            "mamba_num_heads": 8,
            "mamba_head_dim": 4,
            "n_groups": 1,
            "ssm_state_size": 16,
            "moe_shared_expert_intermediate_size": 32,
        },
    ),
}
"""Ends of the names on the hub, chat templates of TRL, and what differs from the other sizes."""
FRAGMENTS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are "
    "provided with function signatures within <tools></tools> XML tags:\n<tools>",
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n",
    '{"name": <function-name>, "arguments": <args-json-object>}',
    '{"type": "function", "function": {"name": "',
    '", "description": "',
    '"parameters": {"type": "object", "properties": {',
    '": {"type": "integer"',
    '": {"type": "string"',
)
"""Whole sentences of Qwen's prompt for tools as tokens, so that it is not a thousand bytes."""
SPELT = frozenset({"Qwen3Moe"})

MORE = "test_prepare_input_called_with_correct_data"
"""It compares whole rows of the dataset, which have one column more when they name roles."""

FAULTS: Counter[str] = Counter()
STEPS: Counter[str] = Counter()
OUTCOMES: dict[str, list[str]] = {}


def make_models(folder: Path) -> None:
    """Models of random weights and their tokenizer, under the hub's names."""
    import transformers
    from trl import chat_template_utils

    templates = Path(chat_template_utils.__file__).parent / "chat_templates"
    for kind, (end, template, more) in MODELS.items():
        template_file = templates / f"{template}.jinja"
        if not (template_file.exists() and hasattr(transformers, f"{kind}ForCausalLM")):
            continue  # newer than this version: so are the tests of it
        tokenizer = make_tokenizer(QWEN if kind in SPELT else 256)
        tokenizer.chat_template = template_file.read_text()
        for task in ("ForCausalLM", "ForSequenceClassification"):
            if hasattr(transformers, f"{kind}{task}"):
                model = tiny_model(kind, task, tokenizer, **more)
                for part in (model, tokenizer):
                    part.save_pretrained(folder / f"tiny-{kind}{task}{end}")


def make_tokenizer(first: int) -> Any:
    """Bytes, with the numbers that they have in Qwen's vocabulary, and a few whole words.

    Args:
        first: Number of the first special token; tokens before it that nobody needs are made up.
    """
    import transformers
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet = [chr(code) for code in (*printable, *range(256, 256 + 256 - len(printable)))]
    named = {**dict(enumerate(alphabet)), **dict(enumerate(SPECIAL, start=first))}
    if first == QWEN:
        named |= PIECES | dict(enumerate(FRAGMENTS, start=1000))
    size = 1 + max(named)
    spelt = [named.get(i, f"<|unused {i}|>") for i in range(size)]
    words = Tokenizer(models.BPE(vocab={value: i for i, value in enumerate(spelt)}, merges=[]))
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    words.add_special_tokens(list(SPECIAL))
    tokens = [
        token for token in named.values() if token in FRAGMENTS or token.endswith("tool_call>")
    ]
    words.add_tokens([AddedToken(token, normalized=False) for token in tokens])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token=SPECIAL[0], eos_token=SPECIAL[2]
    )


def tiny_model(kind: str, task: str, tokenizer: Any, **more: Any) -> Any:
    """One model of random weights, of a family that transformers has."""
    import torch
    import transformers

    sizes: dict[str, Any] = {
        "hidden_size": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "intermediate_size": 32,
        **more,
    }
    if task == "ForSequenceClassification":
        sizes["num_labels"] = 1
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        **{name: value for name, value in sizes.items() if value is not None},
    )
    return getattr(transformers, f"{kind}{task}")(config)


def make_dataset(folder: Path) -> None:
    """Prompts with and without roles of a conversation, in the two layouts that the tests load."""
    from datasets import Dataset

    lines = ["---", "configs:"]
    for name, prompts in (
        ("standard_prompt_only", PROMPTS),
        (
            "conversational_prompt_only",
            [[{"role": "user", "content": prompt}] for prompt in PROMPTS],
        ),
    ):
        lines += [f"- config_name: {name}", "  data_files:"]
        for split, rows in (("train", prompts[:17]), ("test", prompts[17:])):
            place = folder / name / f"{split}.parquet"
            place.parent.mkdir(parents=True, exist_ok=True)
            Dataset.from_dict({"prompt": rows}).to_parquet(str(place))
            lines += [f"  - split: {split}", f"    path: {name}/{split}.parquet"]
    (folder / "README.md").write_text("\n".join([*lines, "---", ""]))


def pytest_configure() -> None:
    """As a plugin: watch every trainer that is made from now on, on a CPU if there is no GPU."""
    import torch
    from transformers import TrainingArguments

    checked = TrainingArguments.__post_init__

    def on_cpu(self: Any) -> None:
        self.use_cpu = self.use_cpu or not torch.cuda.is_available()
        checked(self)

    TrainingArguments.__post_init__ = on_cpu
    if os.environ.get("ROLEDRIFT_TRL_TESTS") != "watched":
        return
    import trl

    for kind in (trl.GRPOTrainer, trl.RLOOTrainer):
        kind.__init__ = watching(kind.__init__)


def watching(made: Any) -> Any:
    """A trainer's ``__init__`` that adds the callback, and roles to the dataset."""
    from roledrift_trl import RoleDriftCallback

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        data = kwargs.get("train_dataset")
        if data is not None:
            kwargs["train_dataset"] = data.map(
                lambda _, i: {"role": ROLES[i % 2]}, with_indices=True
            )
        callback = RoleDriftCallback(dict.fromkeys(ROLES, 1), config={"gradients": {"every": 1}})
        kwargs["callbacks"] = [*(kwargs.get("callbacks") or []), callback, reader()]
        made(self, *args, **kwargs)

    return init


def reader() -> Any:
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
                STEPS["steps with lengths and log-probs"] += all(
                    record.stat("*", name) for name in ("length", "ppl")
                )
                test = os.environ.get("PYTEST_CURRENT_TEST", "").split("::")[-1].split(" ")[0]
                FAULTS.update({f"{test}: {name}": n for name, n in record.faults.items()})

    return Counting()


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """As a plugin: keep one piece of the tests, every n-th."""
    piece, pieces = (int(part) for part in os.environ["ROLEDRIFT_TRL_PIECE"].split("/"))
    kept = [item for number, item in enumerate(items) if number % pieces == piece - 1]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logreport(report: Any) -> None:
    """As a plugin: note how a test ended, and why."""
    if report.when != "call" and report.outcome == "passed":
        return
    why = ""
    if report.outcome == "skipped":
        why = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    elif report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        why = str(report.longrepr) if crash is None else str(crash.message)
    OUTCOMES[report.nodeid] = [report.outcome, " ".join(why.split())[:300]]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """As a plugin: what was watched, everything counted as a fault, and how each test ended."""
    terminalreporter.write_line(f"watched: {dict(STEPS)}; faults: {dict(FAULTS)}")
    place = os.environ.get("ROLEDRIFT_TRL_OUTCOMES")
    if place:
        counts = {"tests": OUTCOMES, "watched": STEPS, "faults": FAULTS}
        if Path(place).exists():  # the pieces before this one
            old = json.loads(Path(place).read_text())
            counts = {
                "tests": {**old["tests"], **OUTCOMES},
                "watched": STEPS + Counter(old["watched"]),
                "faults": FAULTS + Counter(old["faults"]),
            }
        Path(place).write_text(json.dumps(counts, indent=1))


def compare(alone: Path, watched: Path) -> int:
    """Print what ends differently, and why the common failures fail; 1 if more than `MORE` does."""
    first, two = (json.loads(place.read_text()) for place in (alone, watched))
    both = {name: (first["tests"].get(name), how) for name, how in two["tests"].items()}
    for name in first["tests"].keys() - both.keys():
        both[name] = (first["tests"][name], None)
    differ = {name: how for name, how in both.items() if not all(how) or how[0][0] != how[1][0]}
    same = [how[0][0] for name, how in both.items() if name not in differ]
    print(
        f"{len(both)} tests; same alone and watched: {dict(Counter(same))}; differ: {len(differ)}"
    )
    for name, how in sorted(differ.items()):
        why_watched = "its rows have one column more" if name.endswith(MORE) else how[1]
        print(f"  {name}: alone {how[0]}, watched {why_watched}")
    print(f"watched: {two['watched']}; faults: {two['faults']}")
    why = Counter(
        f"{how[1][0]}: {how[1][1][:160]}"
        for name, how in both.items()
        if name not in differ and how[1][0] != "passed"
    )
    for reason, count in why.most_common():
        print(f"{count:4d} {reason}")
    return int(any(not name.endswith(MORE) for name in differ))


def run(tests: Path, asked: argparse.Namespace, rest: list[str]) -> int:
    """Run the tests in a folder of their own; the exit status is pytest's."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        make_models(here / HUB)
        make_dataset(here / HUB / "zen")
        (here / "tests").mkdir()
        for name in ("__init__.py", "conftest.py", "testing_utils.py", asked.file):
            shutil.copy(tests / name, here / "tests" / name)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.trl_own_tests"]
        root = Path(__file__).parents[1]
        paths = (str(root), str(root / "integrations"), os.environ.get("PYTHONPATH", ""))
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "ROLEDRIFT_TRL_TESTS": "alone" if asked.alone else "watched",
            "ROLEDRIFT_TRL_PIECE": asked.piece,
            "HF_HUB_OFFLINE": "1",
            "HF_HOME": str(here / "home"),  # or a dataset of an earlier run is taken
        }
        if asked.outcomes:
            env["ROLEDRIFT_TRL_OUTCOMES"] = str(asked.outcomes.resolve())
        full_command = [*command, f"tests/{asked.file}", *rest]
        return subprocess.run(full_command, cwd=here, env=env, check=False).returncode


def main() -> int:
    """Run the tests, or compare two runs of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tests", type=Path, nargs="?", help="the folder tests of TRL's sources")
    parser.add_argument("--file", choices=FILES, default=FILES[0])
    parser.add_argument("--alone", action="store_true", help="without the callback")
    parser.add_argument("--piece", default="1/1", help="1/3: the first third of the tests")
    parser.add_argument("--outcomes", type=Path, help="a file for how each test ended; pieces add")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("ALONE", "WATCHED"))
    asked, rest = parser.parse_known_args()
    if asked.compare:
        return compare(*asked.compare)
    if asked.tests is None:
        parser.error("name the folder tests of TRL's sources, or two files to --compare")
    return run(asked.tests, asked, rest)


if __name__ == "__main__":
    sys.exit(main())
