"""Sections of the detectors."""

from dataclasses import fields

from roledrift.detect import DETECTORS
from roledrift.thresholds import DetectorsConfig


def test_every_detector_has_a_section_and_can_be_switched_off() -> None:
    sections = {one.name: getattr(DetectorsConfig(), one.name) for one in fields(DetectorsConfig)}
    assert sections.keys() == DETECTORS.keys()
    assert all(section.enabled for section in sections.values())
