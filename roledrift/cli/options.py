"""The options of a verb as one value: every field of a dataclass is an option of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints


def with_options(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb its options as the argument ``how``, and typer a parameter for each.

    Args:
        kind: A dataclass; its fields are annotated as typer wants parameters to be, and all have a
            default.
    """

    def spread(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        hints = get_type_hints(kind, include_extras=True)
        options = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=one.default,
                annotation=hints[one.name],
            )
            for one in fields(kind)
        ]

        @wraps(verb)
        def told(**given: Any) -> None:
            verb(how=kind(**{one.name: given.pop(one.name) for one in fields(kind)}), **given)

        whole = [*(one for one in own if one.name != "how"), *options]
        told.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]
        told.__annotations__ = {one.name: one.annotation for one in whole}
        return told

    return spread
