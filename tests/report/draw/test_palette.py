from __future__ import annotations

from roledrift.judgement import SEVERITIES
from roledrift.report.draw.palette import (
    DASHES,
    INKS,
    TONES,
    WORDS,
    by_light,
    ink_of,
    tone,
    variables,
)
from roledrift.report.statuses import STATUSES

STATES = ("failing", "input-problem", "suspicious", "watch")


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_colours_can_be_read_on_both_pages() -> None:
    for name in ("ink", "soft", "good", *STATES):
        assert contrast(INKS[name].light, INKS["page"].light) >= 4.5, name
        assert contrast(INKS[name].dark, INKS["page"].dark) >= 4.5, name


def test_a_role_keeps_its_colour() -> None:
    roles = ("orchestrator", "worker", "synthesizer")
    assert [tone(role, roles) for role in roles] == [0, 1, 2]
    assert tone("nobody", roles) == -1


def test_every_light_colour_names_one_ink() -> None:
    assert len(by_light()) == len(INKS) + len({*TONES, *WORDS})
    assert len(DASHES) == len(TONES)
    assert variables(dark=True) != variables(dark=False)


def test_names_of_lines_can_be_read_on_both_pages() -> None:
    for word, ink in zip(WORDS, TONES, strict=True):
        assert contrast(word.light, INKS["page"].light) >= 4.5
        assert contrast(word.dark, INKS["page"].dark) >= 4.5
        # Lines and their names are of one hue.
        assert word.dark == ink.dark
    for name in ("ink", "soft", "good", *STATES):
        assert contrast(INKS[name].light, INKS["band"].light) >= 4.5, name
        assert contrast(INKS[name].dark, INKS["band"].dark) >= 4.5, name


def test_every_state_has_a_colour_and_every_severity_its_own() -> None:
    severities = {ink_of(severity) for severity in SEVERITIES}
    assert len(severities) == len(SEVERITIES)
    assert all(ink_of(status) not in severities for status in STATUSES if status not in SEVERITIES)
    assert ink_of("ok") == ink_of("clean") == INKS["good"]
    assert ink_of("closed") == ink_of("of another version") == INKS["soft"]
    for severity in SEVERITIES:  # chips of the two worst are filled: words in the page's colour
        assert contrast(ink_of(severity).light, INKS["page"].light) >= 4.5
        assert contrast(ink_of(severity).dark, INKS["page"].dark) >= 4.5
