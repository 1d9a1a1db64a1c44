"""Which trainable weights of a model a gradient probe can observe, and why not the others.

PEFT is recognised by the names its layers have had since the first release (``lora_A``, ``lora_B``
and their adapters); it is not imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from roledrift.errors import AttachError
from roledrift.workflow import Workflow

PLAIN = ""
"""Adapter name of weights that belong to no adapter."""

LIMITS = (
    "packed sequences need attention that keeps them apart (position_ids that restart, or a "
    "block-diagonal mask): attention across them mixes their roles and is not noticed here",
    "roles that alternate inside one sequence cannot be told apart by tokens: give each role a loss"
    " and a backward of its own and use RoleOrderedGradients",
)
"""What taps cannot notice, said at attach."""

_REASONS = {
    "embedding": "embeddings are looked up, not multiplied: there is no linear layer to observe",
    "target_parameters": "LoRA on target_parameters adds to a parameter, not to a layer's output",
    "magnitude": "the magnitude vector of DoRA is no linear layer",
    "expert": "a mixture of experts regroups tokens, so rows can no longer be told apart",
    "bias": "biases are not observed",
    "full": "trained in full: use store='sketch' (linear layers, with a stated error)",
    "tied": "several modules share the weight: only a part of its gradient passes one of them",
    "other": "not a linear layer",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A linear layer whose weight can be observed."""

    module: nn.Linear
    name: str
    adapter: str

    @property
    def trained(self) -> Tensor:
        """The parameter; FSDP1 puts a flat one into the place of the layer's weight."""
        flat: Tensor | None = getattr(self.module, "_flat_param", None)
        return self.module.weight if flat is None else flat


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a probe sees of a model.

    Attributes:
        policies: Adapter of the model to policy of the workflow (adapter ``""``: no adapter).
        layers: Number of weights observed.
        uncovered: Reason to names of trainable parameters that are not observed.
        notes: Limits that hold for this way of measuring, each with what to do.
        method: ``exact`` or ``folded``; likewise in every record.
        relative_error: Stated relative standard error of a norm (for a sketch an upper bound that
            each record replaces by its own).
        buffer_bytes: Memory kept for the sums.
    """

    policies: Mapping[str, str]
    layers: int
    uncovered: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...]
    method: str
    relative_error: float
    buffer_bytes: int

    def describe(self) -> str:
        """For people: one line, and one more per reason and note."""
        lines = [
            f"role gradients of {self.layers} weights, policies "
            f"{sorted(set(self.policies.values()))}, {self.method}"
            + (f" (+-{self.relative_error:.1%} of a norm)" if self.relative_error else "")
        ]
        lines += [f"not covered: {len(layers)} ({why})" for why, layers in self.uncovered.items()]
        lines.append(
            "each record says how much of the gradient's norm these weights cover, and whether the "
            "roles' parts add up to it"
        )
        return "\n".join([*lines, *self.notes])


def find_parts(model: nn.Module, *, plain: bool) -> list[Part]:
    """Observable linear layers in the order of the model's modules.

    Args:
        model: Anything that contains PEFT layers, wrapped or not.
        plain: Also layers that belong to no adapter and are trained in full.
    """
    parts = list(_lora_parts(model))
    seen = {id(part.module) for part in parts}
    if plain:
        tied = tied_weights(model)
        for name, module in model.named_modules():
            trained = isinstance(module, nn.Linear) and module.weight.requires_grad
            if trained and id(module.weight) in tied:
                continue
            if (
                trained
                and id(module) not in seen
                and ".experts." not in name
                and "lora_" not in name
            ):
                assert isinstance(module, nn.Linear)
                parts.append(Part(module, name, _owner(name)))
    return parts


def _lora_parts(model: nn.Module) -> Iterator[Part]:
    for name, module in model.named_modules():
        if hasattr(module, "parameter_name") or ".experts." in f".{name}.":
            continue
        for side in ("lora_A", "lora_B"):
            layers = getattr(module, side, None)
            if isinstance(layers, nn.ModuleDict):
                for adapter, wrapped in layers.items():
                    # FSDP1 wraps what is trained apart from what is frozen: every such layer alone.
                    layer = getattr(wrapped, "_fsdp_wrapped_module", wrapped)
                    if isinstance(layer, nn.Linear):
                        yield Part(layer, f"{name}.{side}.{adapter}", adapter)


def _owner(name: str) -> str:
    """Adapter that a copy under PEFT's ``modules_to_save`` belongs to."""
    before, separator, after = name.partition("modules_to_save.")
    return after.split(".")[0] if separator and before else PLAIN


def trained_adapters(parts: list[Part]) -> Counter[str]:
    """How many weights of each adapter are trained at present; zero for a frozen adapter."""
    trained: Counter[str] = Counter()
    for part in parts:
        trained[part.adapter] += part.module.weight.requires_grad
    return trained


def policies_of(
    trained: Mapping[str, int], workflow: Workflow, given: Mapping[str, str] | None
) -> dict[str, str]:
    """Policy of each adapter that is trained; a frozen reference adapter is left out.

    Args:
        trained: Adapters, with how much of each is trained now. One that is frozen now still counts
            if the workflow or ``given`` names it: routing by ``set_adapter`` freezes the others.
        workflow: For the names of policies.
        given: Adapter to policy, where names differ.

    Raises:
        AttachError: If ``given`` names an adapter that the model lacks.
    """
    named = dict(given or {})
    strange = sorted(set(named) - set(trained))
    if strange:
        raise AttachError(
            f"adapters {strange} are not in the model; its adapters are {sorted(trained)}"
        )
    known = sorted(set(workflow.policies))
    wanted = sorted(name for name in trained if trained[name] or name in named or name in known)
    alone = len(wanted) == 1 and len(known) == 1
    return {name: named.get(name, known[0] if alone else name or "model") for name in wanted}


def explain_uncovered(model: nn.Module, covered: set[int]) -> dict[str, tuple[str, ...]]:
    """Names of the trainable parameters not in ``covered``, by the reason."""
    owners = dict(model.named_modules())
    tied = tied_weights(model)
    reasons: dict[str, list[str]] = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad and id(parameter) not in covered:
            continue
        if id(parameter) not in covered:
            why = "tied" if id(parameter) in tied else _reason(name, owners)
            reasons.setdefault(_REASONS[why], []).append(name)
    return {why: tuple(names) for why, names in sorted(reasons.items())}


def tied_weights(model: nn.Module) -> set[int]:
    """Identities of the parameters that several modules hold."""
    places = Counter(
        id(parameter)
        for module in model.modules()
        for parameter in vars(module)["_parameters"].values()
        if parameter is not None
    )
    return {place for place, times in places.items() if times > 1}


def _reason(name: str, owners: Mapping[str, nn.Module]) -> str:
    place, _, leaf = name.rpartition(".")
    owner = owners.get(place)
    words = name.split(".")
    if "lora_magnitude_vector" in words:
        return "magnitude"
    if any(word.startswith("lora_embedding") for word in words) or isinstance(owner, nn.Embedding):
        return "embedding"
    if any(word in ("lora_A", "lora_B") for word in words):
        root = name.partition(".lora_")[0]
        if hasattr(owners.get(root), "parameter_name"):
            return "target_parameters"
    if "experts" in words:
        return "expert"
    if leaf == "bias":
        return "bias"
    return "full" if isinstance(owner, nn.Linear) else "other"


def is_compiled(model: nn.Module) -> bool:
    """True if torch.compile wraps the model or a part of it."""
    return any(
        hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None
        for module in model.modules()
    )
