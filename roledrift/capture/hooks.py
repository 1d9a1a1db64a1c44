"""Hooks through which a model does not hold what watches it."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import ref


class WeakHook:
    """A hook of a module that calls a method for as long as its object lives.

    A deep copy or a pickle of the module gets a hook that does nothing: it is another module, and
    what watches the first one (open files, locks) can be neither copied nor pickled.

    Args:
        method: What a hook calls; a bound method.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        assert isinstance(method, MethodType)
        # WeakMethod would make a new bound method in each call; hooks run in every layer.
        self._owner, self._function = ref(method.__self__), method.__func__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the call on; None once the object is gone."""
        owner = self._owner()
        return None if owner is None else self._function(owner, *args, **kwargs)

    def __deepcopy__(self, _memo: object) -> Callable[..., None]:
        return do_nothing

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return _nothing, ()


def do_nothing(*_args: Any, **_kwargs: Any) -> None:
    """What the copy of a watched module calls in the place of a hook."""


def _nothing() -> Callable[..., None]:
    return do_nothing
