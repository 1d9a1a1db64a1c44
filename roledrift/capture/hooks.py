"""Hooks through which a model does not hold what watches it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod


class WeakHook:
    """A hook of a module that calls a method for as long as its object lives.

    A deep copy or a pickle of the module gets a hook that does nothing: it is another module, and
    what watches the first one (open files, locks) can be neither copied nor pickled.

    Args:
        method: What a hook calls; a bound method.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = WeakMethod(method)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Pass the call on; None once the object is gone."""
        method = self._method()
        return None if method is None else method(*args, **kwargs)

    def __deepcopy__(self, _memo: object) -> Callable[..., None]:
        return do_nothing

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[()]]:
        return _nothing, ()


def do_nothing(*_args: Any, **_kwargs: Any) -> None:
    """What the copy of a watched module calls in the place of a hook."""


def _nothing() -> Callable[..., None]:
    return do_nothing
