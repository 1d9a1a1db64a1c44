"""What a format is: how it is recognised and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roledrift.ingest.ledger import Ledger
from roledrift.ingest.roles import RoleMap
from roledrift.ingest.rows import Events
from roledrift.workflow import Routing


@dataclass(slots=True)
class Facts:
    """What a reader finds out about the run while reading; for the header.

    Attributes:
        workflow: Name of the workflow; empty for that of the roles.
        slots: Roles that the source's numbers imply although no output of theirs was seen.
    """

    host: str = ""
    run: str = ""
    task: str = ""
    scale: str = ""
    seed: int | None = None
    routing: Routing | dict[str, str] | None = None
    workflow: str = ""
    slots: dict[str, int] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Job:
    """One import, as a reader sees it.

    Attributes:
        source: File or folder to read.
        address: What the user typed if the source is no path, such as ``wandb://...``.
        roles: Foreign names to roles.
        mapping: The mapping file's content, for the ``table`` format.
        ledger: Where everything skipped or odd is counted.
        facts: Filled in by the reader.
        part: Which of several runs in the source is meant; empty if it holds one.
        tokenizer: What counts tokens where the source does not; empty if nothing does.
        count: It counts them.
    """

    source: Path
    roles: RoleMap = field(default_factory=RoleMap)
    mapping: dict[str, Any] | None = None
    ledger: Ledger = field(default_factory=Ledger)
    facts: Facts = field(default_factory=Facts)
    part: tuple[str, ...] = ()
    tokenizer: str = ""
    count: Callable[[str], int] | None = None
    address: str = ""

    @property
    def shown(self) -> str:
        """What the source is called in messages."""
        return self.address or str(self.source)


@dataclass(frozen=True, slots=True)
class Source:
    """One log of a tree of logs.

    Attributes:
        form: Its format.
        part: Which of several runs at ``path`` is meant; empty if there is one.
        name: What it is of.
        dataset: Problems that it evaluates on; empty if it does not say.
        steps: How many steps it has, roughly.
        describe: Adds what the names in a tree say about the run to its facts.
    """

    form: Format
    path: Path
    name: str
    part: tuple[str, ...] = ()
    dataset: str = ""
    steps: int = 0
    describe: Callable[[Facts], object] | None = None


Claim = tuple[list[Source], list[Path]]
"""Logs in a folder, and the folders below it that are still to be looked through."""


@dataclass(frozen=True, slots=True)
class Format:
    """One foreign format.

    Attributes:
        name: What ``--as`` takes.
        title: What it is, for people.
        sniff: The reason why a path is of this format, None if it is not.
        read: Yields what the source holds; steps in order, each closed when it is complete.
        supplies: What the framework needs to be told to write more, by the names in ``gaps``.
        runs: Ids and names of the runs at a path, for a format that can hold several; ``Job.part``
            is the id of the one to read.
        scheme: What the addresses begin with that its ``read`` takes beside paths: ``mlflow://``.
        claim: For a format that is spread over folders: the logs of this format that a folder of a
            tree is, given the folders below it; no log if it is none. A format without it claims
            what it sniffs.
        settle: Corrects the logs of a whole tree, given its root and all logs in it.
        evaluates: Whether it holds evaluations of checkpoints, and not what training logged.
        only_numbers: Whether no outputs of roles are in it.
    """

    name: str
    title: str
    sniff: Callable[[Path], str | None]
    read: Callable[[Job], Events]
    supplies: Mapping[str, str] = field(default_factory=dict)
    runs: Callable[[Path], Mapping[str, str]] | None = None
    scheme: str = ""
    claim: Callable[[Format, Path, list[Path]], Claim] | None = None
    settle: Callable[[Format, Path, list[Source]], list[Source]] | None = None
    evaluates: bool = False
    only_numbers: bool = False
