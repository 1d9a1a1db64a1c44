"""Messages for commands that were typed wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from roledrift.cli import console


def usage(error: Any, verbs: Sequence[str]) -> console.Failure:
    """Explain what was wrong with the arguments, and what may have been meant."""
    context = getattr(error, "ctx", None)
    verb = context.command_path if context is not None else "roledrift"
    message = str(error.format_message()).replace("Value error, ", "")
    possible = getattr(error, "possibilities", None)
    if possible:
        message = f"{error.message.rstrip('.')}. Did you mean {possible[0]}?"
    tried = message.split("'")[1] if message.startswith("No such command '") else ""
    near = get_close_matches(tried, verbs, n=1)
    if tried and "Did you mean" not in message:
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(verbs)}."
        message = f"{message} {hint}"
    return console.failure("usage", message, f"{verb} --help")
