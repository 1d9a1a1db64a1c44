"""Prompt texts per role, one TOML file per family of models."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

from reference_trainer.errors import SettingsError


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
                f"prompt family {self.family!r} has no form {form!r} for role {role!r}: "
                f"add it to {self.family}.toml"
            ) from None
        return text.format(**values)


@cache
def load_prompts(family: str) -> Prompts:
    """Read ``<family>.toml`` next to this file.

    Raises:
        SettingsError: If there is no such family.
    """
    folder = resources.files(__name__)
    file = folder / f"{family}.toml"
    if not file.is_file():
        known = sorted(one.name[:-5] for one in folder.iterdir() if one.name.endswith(".toml"))
        raise SettingsError(f"no prompt family {family!r}; there are {known}")
    return Prompts(family, MappingProxyType(tomllib.loads(file.read_text("utf-8"))))
