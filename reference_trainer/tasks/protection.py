"""What keeps an untrusted program in on this machine, and how little of it a run accepts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["namespaces", "rlimits"]
Floor = Literal["namespaces", "confined", "rlimits"]

LEVELS: tuple[Level, ...] = ("namespaces", "rlimits")
"""Best first."""

FLOORS: tuple[Floor, ...] = ("namespaces", "confined", "rlimits")
"""Strictest first."""


@dataclass(frozen=True, slots=True)
class Protection:
    """What is in force, found out by trying.

    Attributes:
        level: How programs are fenced in.
        own_user: Programs run as a user of their own.
        seccomp: Dangerous system calls are refused.
        landlock: Files are confined by Landlock.
    """

    level: Level
    own_user: bool
    seccomp: bool
    landlock: bool

    @property
    def network(self) -> bool:
        """True if programs cannot reach the network."""
        return self.level != "rlimits" or self.seccomp

    @property
    def writes(self) -> bool:
        """True if programs cannot write outside their directory."""
        return self.level != "rlimits" or self.landlock

    @property
    def reads(self) -> bool:
        """True if programs cannot read what only the caller may read, its environment included."""
        return self.level != "rlimits" or self.landlock or self.own_user

    @property
    def signals(self) -> bool:
        """True if programs cannot end processes that are not theirs."""
        return self.level != "rlimits" or self.seccomp or self.own_user

    @property
    def open(self) -> tuple[str, ...]:
        """What a program could do that it should not."""
        held = {
            "reach the network": self.network,
            "write outside its own directory": self.writes,
            "read private files": self.reads,
            "end other processes": self.signals,
        }
        return tuple(deed for deed, prevented in held.items() if not prevented)

    @property
    def strength(self) -> Floor:
        """The strictest floor that is met."""
        if self.level != "rlimits":
            return "namespaces"
        return "rlimits" if self.open else "confined"

    @property
    def label(self) -> str:
        """The level and what is in force, e.g. ``"namespaces (own user, seccomp)"``."""
        extras = {"own user": self.own_user, "seccomp": self.seccomp, "Landlock": self.landlock}
        return f"{self.level} ({', '.join(name for name, on in extras.items() if on) or 'bare'})"


def shortfall(protection: Protection, floor: Floor) -> str:
    """Say why ``protection`` is below ``floor`` and what to do; empty if it is not."""
    if FLOORS.index(protection.strength) <= FLOORS.index(floor):
        return ""
    deeds = " and ".join(protection.open) or "see the machine's other processes"
    return (
        f"programs that the model writes would run at protection level {protection.label}, below "
        f"sandbox.floor = {floor!r}: they could {deeds}. Allow user namespaces "
        f"on this machine, or accept it with sandbox.floor = {protection.strength!r}"
    )
