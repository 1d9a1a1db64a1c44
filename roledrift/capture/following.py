"""Every gradient that autograd delivers to a trained parameter, also where FSDP shards it.

An ordinary parameter is followed by a hook of its own. FSDP trains shards, which autograd never
sees: FSDP gathers the whole weights in front of a module's forward and takes what autograd gives to
those. So the whole weights are followed, from the moment at which that forward begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

import torch
from torch import Tensor, distributed, nn
from torch.utils.hooks import RemovableHandle

from roledrift.capture.closure import Closure
from roledrift.capture.hooks import WeakHook

Places = Mapping[int, tuple[str, int]]
"""Identity of a tapped layer to its adapter and the index of its weight there."""
_UNIT = 1 << 34
"""Places set aside for the numbers of one module whose weights FSDP gathers. Their count differs
between ranks before they are gathered, the places must not."""


@dataclass(slots=True)
class Parameter:
    """One trained parameter and where its gradient goes.

    Attributes:
        value: The parameter; None once the model is gone.
        closures: Of its policies.
        weight: Index of its tapped weight, None if it has no tap.
        start: Place of its first number among all parameters.
        handle: Of its hook while a step is measured.
    """

    value: ref[Tensor]
    closures: Sequence[Closure]
    weight: int | None
    start: int
    handle: RemovableHandle | None = None

    def hook(self) -> None:
        """Follow its gradients from now on, if it is trained now."""
        value = self.value()
        if self.handle is None and value is not None and value.requires_grad:
            receive = _receiver(self.closures, self.weight, self.start)
            self.handle = value.register_hook(receive)  # type: ignore[no-untyped-call]

    def remove(self) -> None:
        """Leave it alone."""
        if self.handle is not None:
            self.handle.remove()
            self.handle = None

    def missed(self) -> bool:
        """False: autograd tells it about every gradient."""
        return False


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A weight of a module that gathers: whose it is, its name there, and where it goes."""

    owner: ref[nn.Module]
    name: str
    closures: Sequence[Closure]
    weight: int | None

    def value(self) -> Tensor | None:
        return getattr(self.owner(), self.name, None)


class Shards:
    """The weights that FSDP gathers in front of one module's forward.

    Args:
        module: In its forward the weights are whole; None if they never are.
        start: Place of the first number among all parameters.
    """

    def __init__(self, module: nn.Module | None, start: int) -> None:
        self.leaves: list[_Leaf] = []
        self._module = None if module is None else ref(module)
        self._start = start
        self._gathered = False
        self._handle: RemovableHandle | None = None
        self._hooked: dict[int, tuple[ref[Tensor], RemovableHandle]] = {}

    def hook(self) -> None:
        """Wait for the forward, behind the hook that gathers."""
        module = None if self._module is None else self._module()
        if self._handle is None and module is not None:
            self._handle = module.register_forward_pre_hook(WeakHook(self._enter))

    def remove(self) -> None:
        """Leave the module and its weights alone."""
        for handle in (self._handle, *(handle for _, handle in self._hooked.values())):
            if handle is not None:
                handle.remove()
        self._handle, self._gathered = None, False
        self._hooked.clear()

    def missed(self) -> bool:
        """Whether gradients of trained weights may have come without being followed."""
        values = [leaf.value() for leaf in self.leaves]
        return not self._gathered and any(
            value is not None and value.requires_grad for value in values
        )

    def _enter(self, *_: Any) -> None:
        if not torch.is_grad_enabled():
            return
        start, self._gathered = self._start, True
        for leaf in self.leaves:
            value = leaf.value()
            if value is None:
                continue
            if _is_shard(value):  # of a tensor-parallel mesh too: it is never whole
                self._gathered = False
            elif value.requires_grad:
                self._follow(value, _receiver(leaf.closures, leaf.weight, start))
            start += value.numel()

    def _follow(self, value: Tensor, receive: Callable[[Tensor], None]) -> None:
        # FSDP1 makes new tensors in each forward; one of them may stand where a dead one stood.
        known = self._hooked.get(id(value))
        if known is None or known[0]() is not value:
            handle = value.register_hook(receive)  # type: ignore[no-untyped-call]
            self._hooked[id(value)] = (ref(value), handle)


Followed = Parameter | Shards


def follow(model: nn.Module, closures: Mapping[str, Closure], places: Places) -> list[Followed]:
    """All parameters that may be trained, each with the closures of its policies."""
    units = _units(model)
    shards: dict[str | None, Shards] = {}
    followed: list[Followed] = []
    seen: set[int] = set()
    start = 0
    for place, module in model.named_modules(remove_duplicate=False):
        unit = _unit_of(place, units)
        flat = unit is not None and units[unit][1]
        for name, value in _tensors(module, flat=flat):
            adapter, weight = places.get(id(module), (None, None))
            if name != "weight":
                adapter, weight = None, None
            words = place.split(".")
            owners = (
                [adapter]
                if adapter is not None
                else [policy for policy in closures if policy in words]
            )
            if id(value) in seen or not (owners or value.requires_grad):
                continue
            seen.add(id(value))
            # A parameter of no adapter moves with every policy.
            tracked = [closures[owner] for owner in owners or closures]
            if flat or _is_shard(value):
                gathers = None if unit is None else units[unit][0]
                own = shards.setdefault(unit, Shards(gathers, (len(shards) + 1) * _UNIT))
                own.leaves.append(_Leaf(ref(module), name, tracked, weight))
            else:
                followed.append(Parameter(ref(value), tracked, weight, start))
                start += value.numel()
    return [*followed, *shards.values()]


def _receiver(
    closures: Sequence[Closure], weight: int | None, start: int
) -> Callable[[Tensor], None]:
    # The hook is a part of the model, which must not hold what watches it.
    known = [ref(closure) for closure in closures]

    def arrived(gradient: Tensor) -> None:
        for reference in known:
            closure = reference()
            if closure is not None:
                closure.receive(weight, start, gradient)

    return arrived


def _is_shard(value: Tensor) -> bool:
    return hasattr(value, "to_local") or hasattr(value, "_sharded_size")


def _units(model: nn.Module) -> dict[str, tuple[nn.Module, bool]]:
    """Modules in whose forward weights are whole, by name, and whether FSDP1 shards them."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return {}
    from torch.distributed import fsdp

    gathers: Any = getattr(fsdp, "FSDPModule", ())  # torch 2.6
    modules = {}
    for name, module in model.named_modules():
        if isinstance(module, fsdp.FullyShardedDataParallel):
            place = f"{name}._fsdp_wrapped_module".removeprefix(".")
            modules[place] = (model.get_submodule(place), True)
        elif isinstance(module, gathers):
            modules[name] = (module, False)
    return modules


def _unit_of(place: str, units: Mapping[str, Any]) -> str | None:
    """The innermost of the modules that gather ``place``'s weights."""
    while place not in units:
        if not place:
            return None
        place = place.rpartition(".")[0]
    return place


def _tensors(module: nn.Module, *, flat: bool) -> Iterator[tuple[str, Tensor]]:
    """Weights of a module itself; FSDP1 may have made plain tensors of them, cut from one."""
    held = vars(module)
    for name, value in [*held["_parameters"].items(), *(held.items() if flat else ())]:
        if isinstance(value, Tensor) and not (flat and hasattr(value, "_sharded_size")):
            yield name, value
