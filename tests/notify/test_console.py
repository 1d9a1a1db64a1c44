import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.notify.console import ConsoleNotifier, printable
from roledrift.protocols import Notifier
from roledrift.records import Alert, RunHeader
from roledrift.workflow import VOTING

HEADER = RunHeader(run="voting-7", workflow=VOTING)
ALERT = Alert(
    id="a3f2c1d0",
    detector="length_inflation",
    finding="length_inflation",
    role="aggregator",
    policy="shared",
    level="ERROR",
    state="open",
    step=23,
    onset=19,
    title="aggregator: answers x3.1 since step 19",
    text="Answers grew.",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(alert: Alert, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    notifier: Notifier = ConsoleNotifier(stream)
    notifier.notify(alert, HEADER)
    return stream.getvalue()


def test_one_line_says_it_all() -> None:
    assert told(replace(ALERT, stops=True)) == (
        "roledrift ERROR step 23 aggregator: answers x3.1 since step 19"
        " [length_inflation a3f2c1d0] stops the run\n"
    )


def test_the_first_advice_is_the_second_line() -> None:
    lines = told(replace(ALERT, advice=("roll back", "and more"))).splitlines()
    assert lines[1:] == ["  try: roll back"]


def test_a_closed_alert_says_so_and_advises_nothing() -> None:
    closed = replace(ALERT, state="closed", level="INFO", title="over", advice=("x",), stops=True)
    assert told(closed) == (
        "roledrift INFO step 23 aggregator: over [length_inflation a3f2c1d0] closed\n"
    )


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31;1mERROR\x1b[0m" in told(ALERT, Terminal())
    assert "\x1b" not in told(ALERT)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told(ALERT, Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in told(ALERT, Terminal())


def test_standard_error_is_looked_up_when_the_alert_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ConsoleNotifier().notify(ALERT, HEADER)
    out, err = capsys.readouterr()
    assert out == ""
    assert "step 23 aggregator" in err


def test_a_terminal_that_knows_only_ascii_gets_question_marks() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    ConsoleNotifier(stream).notify(replace(ALERT, title="χ² rises"), HEADER)
    assert b"aggregator: ?? rises" in raw.getvalue()


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jgone", "gone"),
        ("\x9d0;title\x9cafter", "after"),
        ("\x1bPdevice\x1b\\after", "after"),
        ("a\x1b(Bb", "a(Bb"),
        ("a\r\nb\tc\u2028d", "a b c d"),
        ("a\x00\x08\x7f\x85b", "a b"),
        ("\u202eabc\u2066", "abc"),
        ("half \ud83d", "half"),
        ("0 \x1b\r0", "0 0"),
        ("", ""),
        ("x" * 500, "x" * 399 + "…"),
    ],
)
def test_printable(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.text(st.characters(exclude_categories=()), max_size=80))
def test_whatever_a_model_writes_is_one_harmless_line(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    shown.encode("utf-8")
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in shown)
    assert len(told(replace(ALERT, title=text, role=text)).splitlines()) == 1
