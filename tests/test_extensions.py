"""Parts of other distributions, from real metadata on the path."""

import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from roledrift.cli.doctor import machine
from roledrift.extensions import attempt, extensions, usable

CODE = "made = []\ndef part(*arguments):\n    made.append(arguments)\n"


def test_nothing_is_imported_before_it_is_asked_for(install: Any) -> None:
    install("dist_a", {"probes": {"mine": "lazy_part:part"}}, code={"lazy_part": CODE})
    assert extensions("detectors") == ()
    assert "lazy_part" not in sys.modules
    (one,) = extensions("probes")
    assert (one.name, one.origin, one.fault) == ("mine", "dist_a 1.0", "")
    assert one.part is sys.modules["lazy_part"].part
    assert extensions("probes") is extensions("probes")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise RuntimeError('no')", "RuntimeError: no"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import no_such_module", "ModuleNotFoundError"),
        ("other = 1", "AttributeError"),
        ("def part(:", "SyntaxError"),
    ],
)
def test_a_broken_one_is_named_and_the_others_stay(
    install: Any, caplog: pytest.LogCaptureFixture, code: str, says: str
) -> None:
    install("dist_bad", {"detectors": {"bad": "bad_part:part"}}, code={"bad_part": code})
    install("dist_good", {"detectors": {"good": "good_part:part"}}, code={"good_part": CODE})
    with caplog.at_level(logging.WARNING, "roledrift"):
        parts, faults = usable("detectors", shipped=())
        usable("detectors", shipped=())
    assert list(parts) == ["good"]
    assert says in faults["bad"]
    assert "dist_bad 1.0" in faults["bad"]
    (said,) = [one.getMessage() for one in caplog.records]
    assert "bad of roledrift.detectors (dist_bad 1.0) cannot be used" in said
    told = {one.topic: one for one in machine()}
    assert told["detectors: bad"].state == "broken"
    assert told["detectors: good"].text == "brought by dist_good 1.0"


def test_names_that_are_taken(install: Any, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("dist_a", "dist_b"):
        points = {"probes": {"mine": f"part_of_{name}:part", "lengths": f"part_of_{name}:part"}}
        install(name, points, code={f"part_of_{name}": CODE})
    with caplog.at_level(logging.WARNING, "roledrift"):
        parts, faults = usable("probes", shipped=("lengths",))
    assert list(parts) == ["mine"]
    assert parts["mine"] is sys.modules["part_of_dist_a"].part
    assert faults == {}
    said = "\n".join(one.getMessage() for one in caplog.records)
    assert "dist_a 1.0 brings one of that name already" in said
    assert "roledrift has one of that name itself" in said


def test_what_is_attempted_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    assert attempt("a sum", sum, (1, 2)) == (3, "")
    with caplog.at_level(logging.WARNING, "roledrift"):
        said = [attempt("a quotient of tests", Path, 3)[1] for _ in range(3)]
    assert len(set(said)) == 1
    assert said[0].startswith("TypeError")
    assert len(caplog.records) == 1
