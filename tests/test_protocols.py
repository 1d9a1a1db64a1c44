"""What ships has the shapes that `protocols.py` promises to third parties."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from roledrift import protocols
from roledrift.capture.gradients import RoleGradientProbe
from roledrift.capture.tokens import TokenCapture
from roledrift.config import Config
from roledrift.detect.cards import Card, Context
from roledrift.detect.catalogue import shipped
from roledrift.detect.evidence.board import Board
from roledrift.detect.evidence.course import Course
from roledrift.detect.settings import settings_of
from roledrift.measure.catalogue import shipped as shipped_probes
from roledrift.notify.console import ConsoleNotifier
from roledrift.records import RunHeader
from roledrift.store.writer import RunWriter
from roledrift.workflow import VOTING

PROBES = {card.name: card.make for card in shipped_probes()}


def obeys(thing: object, protocol: type[Any]) -> None:
    for name, promised in vars(protocol).items():
        if name.startswith("_"):
            continue
        assert hasattr(thing, name), f"{type(thing).__name__} lacks {name}"
        if not callable(promised):
            continue
        wanted = list(inspect.signature(promised).parameters)[1:]
        got = list(inspect.signature(getattr(thing, name)).parameters)
        assert got == wanted, f"{type(thing).__name__}.{name} takes {got}, not {wanted}"


@pytest.mark.parametrize("name", sorted(PROBES))
def test_probes(name: str) -> None:
    obeys(PROBES[name](VOTING), protocols.Probe)


@pytest.mark.parametrize("card", shipped(), ids=lambda card: card.name)
def test_detectors(card: Card) -> None:
    config, board = Config(), Board(VOTING, Config(), None)
    detector = card.make(Context(VOTING, config, settings_of(card, config), board, Course()))
    obeys(detector, protocols.Detector)


def test_parts(tmp_path: Path) -> None:
    obeys(RunWriter(tmp_path / "r", RunHeader("r", VOTING)), protocols.Sink)
    obeys(ConsoleNotifier(), protocols.Notifier)
    obeys(TokenCapture(VOTING), protocols.SpanSource)
    obeys(RoleGradientProbe(VOTING), protocols.GradientSource)


def test_sources_are_told_apart() -> None:
    assert isinstance(TokenCapture(VOTING), protocols.SpanSource)
    assert not isinstance(TokenCapture(VOTING), protocols.GradientSource)
    assert isinstance(RoleGradientProbe(VOTING), protocols.GradientSource)
    assert not isinstance(RoleGradientProbe(VOTING), protocols.SpanSource)
