"""What is wrong at set-up is said before the training begins."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Literal

from transformers import Trainer, TrainingArguments

from roledrift.capture.lora_layers import is_compiled
from roledrift.costs import NOTE_DEVICES
from roledrift.errors import AttachError, ConfigError, StoreError
from roledrift.monitor.open_monitor import free
from roledrift.store.reader import is_run
from roledrift.workflow import Workflow, in_order

AUTO = "auto"
"""The workflow whose roles are those that the training dataset names."""

_METHODS = (
    "_generate_and_score_completions",
    "_calculate_rewards",
    "_compute_loss",
    "_get_per_token_logps_and_entropies",
)


def check_trainer(trainer: Any) -> bool:
    """Is this a trainer that can be watched?

    Returns:
        True if it generates (GRPO, RLOO), False if it is any other ``transformers.Trainer``.

    Raises:
        AttachError: If it is None or lacks a method that is wrapped.
    """
    if trainer is None:
        raise AttachError(
            "no trainer found on the call stack: set callback.trainer = trainer before train()"
        )
    if not hasattr(trainer, _METHODS[0]) and isinstance(trainer, Trainer):
        if any(base.__module__.partition(".")[0] == "trl" for base in type(trainer).__mro__):
            raise AttachError(
                f"{type(trainer).__name__} rebuilds its batches, so rows lose their role: "
                "RoleDriftCallback watches trl.GRPOTrainer, trl.RLOOTrainer and "
                "transformers.Trainer. Fine-tune on roles' texts with transformers.Trainer; for "
                "another loop use roledrift.open_monitor and TokenCapture"
            )
        return False
    lacking = [name for name in _METHODS if not hasattr(trainer, name)]
    if lacking:
        raise AttachError(
            f"{type(trainer).__name__} has no {', '.join(lacking)}: RoleDriftCallback watches "
            "trl.GRPOTrainer, trl.RLOOTrainer and transformers.Trainer; for another loop use "
            "roledrift.open_monitor and TokenCapture"
        )
    if hasattr(trainer, "compute_liger_loss") and trainer.args.use_liger_kernel:
        raise AttachError(
            "the Liger GRPO loss of this TRL version hides log-probabilities: set "
            "use_liger_kernel=False, or use TRL 1.16, which has replaced that loss"
        )
    return True


def compile_setting(trainer: Any) -> str:
    """By what the trainer compiles its model, now or later; empty if it does not."""
    if trainer.args.torch_compile:
        return "torch_compile=True"
    plugin = getattr(trainer.accelerator.state, "dynamo_plugin", None)
    if plugin is not None and str(getattr(plugin.backend, "value", "NO")).upper() != "NO":
        return "accelerate's dynamo plugin"
    return "the program" if is_compiled(trainer.model_wrapped) else ""


def scales_in_place(trainer: Any) -> bool:
    """Does this TRL divide the logits of an output layer that is trained in place (1.8 does)?

    PyTorch forbids that where the layer is tapped for gradients: the training would end there.
    """
    head = getattr(trainer.model, "get_output_embeddings", lambda: None)()
    if head is None or not any(parameter.requires_grad for parameter in head.parameters()):
        return False
    own = [vars(base)[_METHODS[3]] for base in type(trainer).__mro__ if _METHODS[3] in vars(base)]
    return any("logits.div_(" in _source(method) for method in own)


def _source(method: Any) -> str:
    """Empty for a method without any: one that was typed into a shell, or is compiled."""
    try:
        return inspect.getsource(method)
    except (OSError, TypeError):
        return ""


def check_dataset(trainer: Any, workflow: Workflow, columns: tuple[str | None, str | None]) -> None:
    """Does the training dataset name a known role for every row, and does the column get through?

    Raises:
        ConfigError: Saying what the dataset holds and what to change.
    """
    dataset = trainer.train_dataset
    held = getattr(dataset, "column_names", None)
    if getattr(trainer, "rollout_func", None) is not None:
        held = None
    for name, setting in zip(columns, ("role_column", "slot_column"), strict=True):
        if name is None:
            continue
        if held is not None and name not in held:
            raise ConfigError(
                f"the training dataset has no column {name!r}; its columns are {sorted(held)}: "
                f"add it, or name the right one with RoleDriftCallback({setting}=...)"
            )
        kept = getattr(trainer, "_signature_columns", None) or ("prompt", "image", "images")
        if held is not None and trainer.args.remove_unused_columns and name not in kept:
            raise ConfigError(
                f"remove_unused_columns=True drops the column {name!r} before training: "
                "set GRPOConfig(remove_unused_columns=False)"
            )
    role, slot = columns
    if held is None or role is None or not hasattr(dataset, "unique"):
        return
    _check_roles(dataset, workflow, role)
    if slot is not None:
        _check_slots(dataset, workflow, (role, slot))


def _check_roles(dataset: Any, workflow: Workflow, column: str) -> None:
    """Is every role one of the workflow?"""
    for value in dataset.unique(column):
        if not isinstance(value, str):
            raise ConfigError(f"column {column!r} holds {value!r}: every row needs a role name")
        try:
            workflow.index(value)
        except ConfigError as error:
            raise ConfigError(
                f"column {column!r} of the training dataset: {error} Pass workflow='auto' to take "
                f"the roles from the column, or pass {{{value!r}: 1, ...}} or a Workflow(...)"
            ) from None


def workflow_of_data(
    trainer: Any,
    columns: tuple[str | None, str | None],
    routing: Literal["shared", "isolated"] | None,
) -> Workflow:
    """The workflow whose roles and slots are those that the training dataset names.

    Raises:
        ConfigError: If the dataset does not name them, or cannot be read ahead.
    """
    dataset, (role, slot) = trainer.train_dataset, columns
    lacking = [
        column for column in columns if column and column not in (dataset.column_names or ())
    ]
    if lacking or not hasattr(dataset, "unique"):
        why = f"which has no column {lacking[0]!r}" if lacking else "which is streamed"
        raise ConfigError(
            f"workflow='auto' reads the roles from the training dataset, {why}: name the column "
            "with role_column=..., or the roles, such as {'solver': 3, 'judge': 1}"
        )
    names = dataset.unique(role)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise ConfigError(f"column {role!r} holds {wrong[0]!r}: every row needs a role name")
    slots = dict.fromkeys(in_order(names), 1)
    for name, number in set(zip(dataset[role], dataset[slot], strict=True)) if slot else ():
        if isinstance(number, int):  # any other value is refused with the rest of the dataset
            slots[name] = max(slots[name], number + 1)
    return Workflow.of(slots, routing=routing)


def _check_slots(dataset: Any, workflow: Workflow, columns: tuple[str, str]) -> None:
    """Is every slot one that its role has?"""
    pairs = set(zip(*(dataset[name] for name in columns), strict=True))
    for role, slot in sorted(pairs, key=repr):
        count = workflow.role(role).slots
        is_number = isinstance(slot, int) and not isinstance(slot, bool)
        # The slot of a role that has only one says nothing, and is not read.
        if not is_number or (count > 1 and not 0 <= slot < count):
            raise ConfigError(
                f"column {columns[1]!r} of the training dataset holds {slot!r} for {role}: every "
                f"row needs a whole number, from 0 to {count - 1} for the {count} slots of {role}"
            )


def run_directory(
    out: str | Path | None, args: TrainingArguments, step: int, *, overwrite: bool
) -> Path:
    """``out``, or a directory beside the checkpoints.

    A new training gets a name at which no run lies; a resumed one gets that of the latest run.
    """
    first = Path(out or Path(str(args.output_dir)) / "roledrift")
    unused = free(first)
    if out or overwrite or unused == first or not step:
        return first if out or overwrite else unused
    number = int(unused.name.rpartition("-")[2]) - 1
    return first if number == 1 else first.with_name(f"{first.name}-{number}")


def continues(out: Path, args: TrainingArguments, step: int, *, overwrite: bool = False) -> bool:
    """Does this training go on with a run that is there already?

    A checkpoint may be from before the callback was added: then there is none, and a run begins.

    Raises:
        StoreError: If a run is there that this training does not go on with.
    """
    exists = is_run(out)
    if exists and not step and not overwrite and args.process_index == 0:
        raise StoreError(
            f"{out}: a run is here already; leave RoleDriftCallback(out=...) out to have the "
            "directory named automatically, pass overwrite=True to replace the run, or continue "
            "its training with train(resume_from_checkpoint=...)"
        )
    return exists and step > 0


def devices_note(trainer: Any) -> dict[str, str]:
    """How many GPUs the trainer occupies, for the estimate of costs; nothing on other machines."""
    accelerator = trainer.accelerator
    if accelerator.device.type != "cuda":
        return {}
    served = getattr(trainer, "vllm_mode", "") == "server" and getattr(trainer, "use_vllm", False)
    held = "processes of the trainer"
    held += "; those of the vLLM server come on top" if served else ""
    return {NOTE_DEVICES: f"{accelerator.num_processes} ({held})"}
