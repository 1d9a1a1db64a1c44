import io
import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

from roledrift.notices import Notice
from roledrift.notify.console import ConsoleNotifier, LogBetweenBars, printable
from roledrift.protocols import Notifier
from tests.notify.alerts import ALERT, HEADER, INCIDENT, NOTICE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def told(notice: Notice, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    notifier: Notifier = ConsoleNotifier(stream)
    notifier.notify(notice, HEADER)
    return stream.getvalue()


def test_the_sentence_of_the_incident_is_told_word_for_word() -> None:
    assert told(NOTICE).splitlines() == [
        f"roledrift FAILING step 23: {INCIDENT.sentence} [length_inflation, incident a3f2c1d0]",
        "  try: stop, or roll back",
        "  This finding stops the run.",
    ]


def test_every_change_has_its_word() -> None:
    calm = replace(NOTICE, stops=False)
    for change, head in (
        ("worsened", "FAILING (worse) step 23: The aggregator"),
        ("revised", "FAILING (another cause) step 23: The aggregator"),
        ("followed", "FAILING step 23: The aggregator"),
        ("closed", "CLOSED step 23: The aggregator"),
    ):
        assert told(replace(calm, change=change)).startswith(f"roledrift {head}")
    quiet = Notice("silent", 4, "No step was finished for 51 s.", alert=replace(ALERT, advice=()))
    assert told(quiet) == "roledrift SUSPICIOUS (silent) step 4: No step was finished for 51 s.\n"
    assert told(replace(quiet, change="resumed")).startswith("roledrift RESUMED step 4: No")


def test_only_what_is_new_is_advised_on() -> None:
    for change in ("followed", "closed"):
        assert "try:" not in told(replace(NOTICE, change=change))
    assert "try: stop" in told(replace(NOTICE, change="worsened"))


@pytest.mark.parametrize(
    ("severity", "colour"), [("failing", "31;1"), ("input problem", "35;1"), ("suspicious", "33")]
)
def test_every_severity_has_its_colour(
    monkeypatch: pytest.MonkeyPatch, severity: str, colour: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    one = replace(NOTICE, incident=replace(INCIDENT, severity=severity))
    assert f"\x1b[{colour}m{severity.upper()}\x1b[0m" in told(one, Terminal())


def test_colour_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b" in told(NOTICE, Terminal())
    assert "\x1b" not in told(NOTICE)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in told(NOTICE, Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in told(NOTICE, Terminal())


def test_standard_error_is_looked_up_when_the_notice_comes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ConsoleNotifier().notify(NOTICE, HEADER)
    out, err = capsys.readouterr()
    assert out == ""
    assert INCIDENT.sentence in err


def test_a_terminal_that_knows_only_ascii_gets_question_marks() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    ConsoleNotifier(stream).notify(replace(NOTICE, text="χ² rises"), HEADER)
    assert b"step 23: ?? rises" in raw.getvalue()


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
    assert len(told(replace(NOTICE, change="closed", text=text, stops=False)).splitlines()) == 1


def test_warnings_are_shown_while_nobody_handles_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = logging.getLogger("roledrift")
    monkeypatch.setattr(log, "handlers", [])
    LogBetweenBars.install()
    LogBetweenBars.install()
    log.warning("from here on, %s", "less")
    assert capsys.readouterr().err == "", "the handlers of the root show it"
    monkeypatch.setattr(logging.root, "handlers", [])
    log.info("a detail")
    log.warning("from here on, %s", "less")
    assert capsys.readouterr().err == "roledrift: from here on, less\n"


def test_a_notice_stands_beside_a_progress_bar_not_in_it() -> None:
    stream = io.StringIO()
    with tqdm(total=40, file=stream, mininterval=0, ncols=60) as bar:
        bar.update(2)
        ConsoleNotifier(stream).notify(NOTICE, HEADER)
        bar.update(1)
    # What a terminal shows of a line is what was written after its last carriage return.
    shown = [line.rsplit("\r", 1)[-1] for line in stream.getvalue().split("\n")]
    assert shown[:3] == told(NOTICE).splitlines()
    assert " 3/40 " in shown[3]
