"""Prompt texts per role: one TOML file per family, or a prompt file of the paper's code."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType

from reference_trainer.errors import SettingsError
from reference_trainer.workflows.prompts.released import released_forms

PLAIN = ("tiny", "weak")
"""Families for the tiny models, which have no chat template; the others are messages of a chat."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The texts of one family.

    Attributes:
        family: Name of the file.
        forms: Role name to form name to text with ``{fields}``.
    """

    family: str
    forms: Mapping[str, Mapping[str, str]]

    def fill(self, role: str, form: str = "prompt", **values: str) -> str:
        """The text of ``role``'s ``form`` with its fields replaced.

        Raises:
            SettingsError: If the family has no such role or form.
        """
        try:
            text = self.forms[role][form]
        except KeyError:
            raise SettingsError(
                f"prompt family {self.family!r} has no form {form!r} for role {role!r}: add it, or "
                "set prompts to a family that has it"
            ) from None
        return text.format(**values)


@cache
def load_prompts(family: str, *, workflow: str = "voting") -> Prompts:
    """Read ``<family>.toml`` next to this file, or a file of the paper's code.

    Args:
        family: Name of a family, or the path of a ``.json`` file.
        workflow: Which part of a ``.json`` file: it has one per workflow.

    Raises:
        SettingsError: If there is no such family or file.
    """
    if family.endswith(".json"):
        return Prompts(family, MappingProxyType(released_forms(Path(family), workflow)))
    folder = resources.files(__name__)
    file = folder / f"{family}.toml"
    if not file.is_file():
        known = sorted(file.name[:-5] for file in folder.iterdir() if file.name.endswith(".toml"))
        raise SettingsError(
            f"prompts: there is no family {family!r}: set it to one of {', '.join(known)}, or to "
            "the path of a prompt.json of the paper's code"
        )
    return Prompts(family, MappingProxyType(tomllib.loads(file.read_text("utf-8"))))
