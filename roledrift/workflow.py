"""Workflows: roles, their slots, and the policy each role acts with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Literal, Self, get_args

from roledrift.errors import ConfigError

Duty = Literal["solve", "select", "judge", "plan", "synthesize"]
"""What a role is there for: the detectors compare a role with the duty it has."""

Routing = Literal["shared", "isolated", "mixed"]

_ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\Z")
SHARED_POLICY = "shared"

MAX_ROLES = 256
MAX_SLOTS = 1024
"""Most slots of one role: every slot has statistics and a place on the page of its own."""


@dataclass(frozen=True, slots=True)
class Role:
    r"""One kind of participant in a workflow.

    Attributes:
        name: Letters, digits, ``_ . -``; starts with a letter.
        slots: Copies of the role within one episode (3 generators have 3 slots). For a variable
            number, the largest.
        duty: What the role is there for.
        terse: True if a healthy answer is a short stamp (``\\boxed{2}``, ``\\boxed{Correct}``).
        trained: False for a role that only acts: its rows are in no loss, or its adapter is frozen.
            Its outputs are measured and judged; that it has no gradient and no update is no fault.
    """

    name: str
    slots: int = 1
    duty: Duty = "solve"
    terse: bool = False
    trained: bool = True


@dataclass(frozen=True, slots=True)
class Workflow:
    """Roles in a fixed order and the policy each one acts with.

    The order of ``roles`` is the registry: every rank, record and table uses the same role indices,
    also where a rank has not seen a role.

    Attributes:
        name: Short name, shown in the report.
        roles: At least one; names are unique.
        policies: Policy of each role, aligned with ``roles``. The same name twice means the two
            roles share parameters.

    Raises:
        ConfigError: With every problem found.
    """

    name: str
    roles: tuple[Role, ...]
    policies: tuple[str, ...]

    def __post_init__(self) -> None:
        problems = [
            f"role name {role.name!r} must start with a letter and hold only letters, digits, _ . -"
            for role in self.roles
            if not _ROLE_NAME.match(role.name)
        ]
        problems += [
            f"role {role.name!r} has slots={role.slots}; it needs at least 1, at most {MAX_SLOTS}"
            for role in self.roles
            if not 1 <= role.slots <= MAX_SLOTS
        ]
        problems += [
            f"role {role.name!r} has the unknown duty {role.duty!r}; known are {get_args(Duty)}"
            for role in self.roles
            if role.duty not in get_args(Duty)
        ]
        if len(self.roles) > MAX_ROLES:
            problems.append(f"{len(self.roles)} roles; at most {MAX_ROLES} make sense")
        if not self.roles:
            problems.append("a workflow needs at least one role")
        if len({role.name for role in self.roles}) != len(self.roles):
            problems.append(f"role names must be unique, got {list(self.role_names)}")
        if len(self.policies) != len(self.roles):
            problems.append(
                f"{len(self.roles)} roles but {len(self.policies)} policies: name one per role"
            )
        if problems:
            raise ConfigError(f"workflow {self.name!r}: " + "; ".join(problems))

    @property
    def role_names(self) -> tuple[str, ...]:
        """Role names in registry order."""
        return tuple(role.name for role in self.roles)

    @property
    def routing(self) -> Routing:
        """``shared`` = one policy for all roles, ``isolated`` = one each, ``mixed`` = in between.

        A workflow with a single role counts as ``isolated``: nothing is shared.
        """
        distinct = len(set(self.policies))
        if distinct == len(self.roles):
            return "isolated"
        return "shared" if distinct == 1 else "mixed"

    def index(self, role: str) -> int:
        """Registry index of ``role``.

        Raises:
            ConfigError: For an unknown role, with the nearest known name.
        """
        try:
            return self.role_names.index(role)
        except ValueError:
            near = get_close_matches(role, self.role_names, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            known = list(self.role_names)
            raise ConfigError(
                f"workflow {self.name!r} has no role {role!r}; its roles are {known}.{hint}"
            ) from None

    def role(self, name: str) -> Role:
        """The role called ``name``; raises like :meth:`index`."""
        return self.roles[self.index(name)]

    def policy_of(self, role: str) -> str:
        """Policy that ``role`` acts with; raises like :meth:`index`."""
        return self.policies[self.index(role)]

    def sharing(self, role: str) -> tuple[str, ...]:
        """The other roles that act with the same policy as ``role``."""
        policy = self.policy_of(role)
        return tuple(
            other
            for other, theirs in zip(self.role_names, self.policies, strict=True)
            if theirs == policy and other != role
        )

    def moves(self, role: str) -> bool:
        """True if training moves the policy of ``role``, through it or a role that shares it."""
        return any(self.role(name).trained for name in (role, *self.sharing(role)))

    def routed(self, routing: Literal["shared", "isolated"] | Mapping[str, str]) -> Self:
        """Return the same workflow with another routing.

        Args:
            routing: ``"shared"``, ``"isolated"`` (policies get the roles' names), or a map from
                every role to a policy name.

        Raises:
            ConfigError: For any other word, a role that the map leaves out, or one it invents.
        """
        if isinstance(routing, str):
            if routing not in ("shared", "isolated"):
                raise ConfigError(
                    f"routing {routing!r} is unknown: say 'shared', 'isolated', or map every role "
                    "to a policy"
                )
            shared = routing == "shared"
            policies = tuple(SHARED_POLICY if shared else name for name in self.role_names)
            return replace(self, policies=policies)
        for name in routing:
            self.index(name)
        missing = [name for name in self.role_names if name not in routing]
        if missing:
            raise ConfigError(
                f"routing of {self.name!r} leaves out {missing}: map every role to a policy"
            )
        return replace(self, policies=tuple(routing[name] for name in self.role_names))

    def without_slots(self) -> Self:
        """Return the same roles with one slot each, for data that do not name the slots."""
        return replace(self, roles=tuple(replace(role, slots=1) for role in self.roles))

    def described(self) -> str:
        """Roles in one line, such as ``generator x3, aggregator``."""
        return ", ".join(
            role.name if role.slots == 1 else f"{role.name} x{role.slots}" for role in self.roles
        )

    @classmethod
    def of(
        cls, source: Workflow | str | Mapping[str, int], *, routing: Routing | None = None
    ) -> Workflow:
        """Make a workflow from what a user is likely to have at hand.

        Args:
            source: A workflow; the name of a preset (``"voting"``, ``"eval_opt"``,
                ``"orch_workers"``, ``"single"``); or ``{"generator": 3, "aggregator": 1}``: role
                to slots, where the duty is guessed from well-known role names.
            routing: ``"shared"`` or ``"isolated"``; None keeps that of ``source`` (presets and
                mappings: shared, which is what one model without role adapters is).

        Raises:
            ConfigError: If the preset is unknown or a value is wrong.
        """
        if isinstance(source, Workflow):
            workflow = source
        elif isinstance(source, str):
            key = source.lower().replace("-", "_")
            if key not in PRESETS:
                near = get_close_matches(key, PRESETS, n=1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ConfigError(
                    f"unknown workflow {source!r}; the presets are {sorted(PRESETS)}.{hint} For "
                    "roles of your own, pass {'solver': 3, 'judge': 1} or a Workflow(...)"
                )
            workflow = PRESETS[key]
        else:
            roles = tuple(_guess(name, slots) for name, slots in source.items())
            workflow = cls("custom", roles, (SHARED_POLICY,) * len(roles))
        if routing is None:
            return workflow
        if routing == "mixed":
            raise ConfigError(
                "routing 'mixed' needs a map: use workflow.routed({role: policy, ...})"
            )
        return workflow.routed(routing)


def _preset(name: str, *roles: Role) -> Workflow:
    return Workflow(name, roles, (SHARED_POLICY,) * len(roles))


VOTING = _preset(
    "voting", Role("generator", slots=3), Role("aggregator", duty="select", terse=True)
)
"""Three generators answer, an aggregator picks one."""

EVAL_OPT = _preset("eval_opt", Role("generator"), Role("evaluator", duty="judge", terse=True))
"""A generator answers, an evaluator judges, the generator revises."""

ORCH_WORKERS = _preset(
    "orch_workers",
    Role("orchestrator", duty="plan"),
    Role("worker", slots=3),
    Role("synthesizer", duty="synthesize"),
)
"""An orchestrator proposes strategies, workers solve, a synthesizer writes the final answer."""

SINGLE = _preset("single", Role("generator"))
"""One role: the control that has neither slots nor sharing."""

POLICY = Workflow("policy", (Role("policy"),), ("policy",))
"""A training of one policy without roles."""

PRESETS: Mapping[str, Workflow] = {
    workflow.name: workflow for workflow in (VOTING, EVAL_OPT, ORCH_WORKERS, SINGLE)
}

_KNOWN = {role.name: role for workflow in PRESETS.values() for role in workflow.roles}


def in_order(roles: Iterable[str]) -> tuple[str, ...]:
    """Sort role names independently of the data: those of the presets come first."""
    known = tuple(_KNOWN)
    return tuple(
        sorted(
            set(roles),
            key=lambda name: (name not in known, name in known and known.index(name), name),
        )
    )


def _guess(name: str, slots: int) -> Role:
    known = _KNOWN.get(name, Role(name))
    return replace(known, slots=slots)
