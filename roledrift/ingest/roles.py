"""Foreign names of speakers as roles and slots, and the workflow that they add up to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from roledrift.errors import ConfigError, StoreError
from roledrift.workflow import PRESETS, SHARED_POLICY, Role, Routing, Workflow

MAX_ROLES = 64
MAX_SLOTS = 64

_COMMA = re.compile(r",(?![^{}\[\]()]*[}\])])")
"""A comma outside of the brackets of a regular expression."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_NUMBERED = re.compile(r"(.*?)[-_ ]?(\d{1,4})\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of ``--roles``.

    Attributes:
        written: As the user wrote it.
        name: Name in the source; empty for a rule that looks at the prompt.
        pattern: What the prompt must contain; None for a rule that looks at the name.
        slot: None leaves the slot to the source.
    """

    written: str
    name: str
    pattern: re.Pattern[str] | None
    role: str
    slot: int | None

    @property
    def by_prompt(self) -> bool:
        """Whether it looks at the prompt."""
        return self.pattern is not None

    def takes(self, name: str, prompt: str) -> bool:
        """Whether a speaker is meant."""
        return name == self.name if self.pattern is None else bool(self.pattern.search(prompt))


class RoleMap:
    r"""Names in the source to roles.

    Written as ``name=role`` or ``name=role:slot``, separated by commas: ``0=generator:0``. A name
    that begins with ``~`` is a regular expression that is searched for in the prompt, for sources
    that name nobody: ``~Solution \d+=aggregator``. The first rule that fits counts. A name that no
    rule fits loses its trailing digits, which become the slot: ``generator2`` is slot 2 of
    ``generator``.

    Raises:
        ConfigError: With every entry that cannot be read.
    """

    def __init__(self, written: str = "") -> None:
        problems: list[str] = []
        self.rules = tuple(
            rule
            for entry in _COMMA.split(written)
            if entry.strip() and (rule := _rule(entry.strip(), problems)) is not None
        )
        if problems:
            raise ConfigError("--roles: " + "; ".join(problems))
        self._taken = dict.fromkeys(self.rules, 0)
        self._rest = 0
        self._known: dict[str, tuple[str, int | None]] = {}

    def resolve(self, name: str, prompt: str = "") -> tuple[str, int | None]:
        """Role and slot of a speaker; the slot is None if nothing gives one."""
        for rule in self.rules:
            if rule.takes(name, prompt):
                self._taken[rule] += 1
                return rule.role, rule.slot
        self._rest += 1
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._resolve(name)
            if len(self._known) > 50 * MAX_ROLES:
                raise StoreError(
                    f"more than {50 * MAX_ROLES} different names of speakers, the last is "
                    f"{name[:40]!r}: name the right column in the mapping, or map them with --roles"
                )
        return known

    def notes(self) -> dict[str, str]:
        """How many spans each rule took: a rule that took none is a mistake, or stands too late."""
        if not self.rules:
            return {}
        counts = [f"{rule.written}: {_spans(n)}" for rule, n in self._taken.items()]
        rest = [f"no rule: {_spans(self._rest)}"] if self._rest else []
        return {"rules": "; ".join(counts + rest)}

    def _resolve(self, name: str) -> tuple[str, int | None]:
        numbered = _NUMBERED.match(name)
        if numbered and numbered[1] and int(numbered[2]) < MAX_SLOTS:
            return safe_role(numbered[1]), int(numbered[2])
        return safe_role(name), None


def _spans(n: int) -> str:
    return "1 span" if n == 1 else f"{n:,} spans" if n else "none"


def _rule(entry: str, problems: list[str]) -> Rule | None:
    name, equals, target = entry.rpartition("=")
    role, _, slot = target.strip().partition(":")
    if not equals or not name or not role:
        problems.append(f"{entry!r} is no name=role")
        return None
    if slot and not (slot.isdecimal() and int(slot) < MAX_SLOTS):
        problems.append(f"{entry!r}: the slot must be a number below {MAX_SLOTS}")
        return None
    if role != safe_role(role):
        problems.append(f"{entry!r}: a role name starts with a letter and holds letters, digits")
        return None
    number = int(slot) if slot else None
    if not name.startswith("~"):
        return Rule(entry, name.strip(), None, role, number)
    try:
        return Rule(entry, "", re.compile(name[1:].strip()), role, number)
    except re.error as error:
        problems.append(f"{entry!r}: no regular expression ({error})")
        return None


def safe_role(name: str) -> str:
    """``name`` as a role name: letters, digits, ``_ . -``, a letter first, at most 40 long."""
    clean = _UNSAFE.sub("-", name).strip("-")[:40]
    if not clean:
        return "unnamed"
    return clean if clean[0].isalpha() and clean[0].isascii() else f"r{clean}"


def workflow_of(
    slots: Mapping[str, int], routing: Routing | Mapping[str, str] | None, name: str = ""
) -> Workflow:
    """The workflow of the roles seen.

    Args:
        slots: Slots by role; a role of a preset keeps what the preset knows of it.
        routing: None counts as shared.
        name: Name of the workflow; empty for that of the preset with the same roles.

    Raises:
        StoreError: If there are no roles or too many to be roles.
    """
    if not slots:
        raise StoreError("the source names no role and holds no per-role number: nothing to import")
    if len(slots) > MAX_ROLES:
        raise StoreError(
            f"{len(slots)} different roles, at most {MAX_ROLES} make sense: name the right column "
            "in the mapping, or map the names with --roles"
        )
    for preset in PRESETS.values():
        if set(preset.role_names) == set(slots):
            roles: tuple[Role, ...] = tuple(
                replace(role, slots=max(slots[role.name], 1)) for role in preset.roles
            )
            built = replace(preset, name=name or preset.name, roles=roles)
            break
    else:
        try:
            made = Workflow.of({role: max(n, 1) for role, n in slots.items()})
        except ConfigError as error:
            raise StoreError(f"{error}: map the names with --roles") from None
        built = replace(made, name=name or "imported")
    if routing is None or routing == "mixed":
        return replace(built, policies=(SHARED_POLICY,) * len(built.roles))
    return built.routed(routing)
