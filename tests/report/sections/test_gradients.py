from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from roledrift.records import GramRecord, StepRecord
from roledrift.report.judged_run import JudgedRun
from roledrift.report.model import Figure, Prose
from roledrift.report.sections import gradients

LABELS = ("generator/0", "generator/1", "aggregator")


def gram(vectors: np.ndarray) -> GramRecord:
    products = vectors @ vectors.T
    return GramRecord("shared", LABELS, tuple(tuple(row) for row in products.tolist()))


def test_the_section_states_the_method_and_its_error(failing: JudgedRun) -> None:
    method, curves = gradients.build(failing).blocks
    assert isinstance(method, Prose)
    assert (
        "folded (random projections of the gradients), relative standard error of a norm 0.8 %"
        in method.text
    )
    assert isinstance(curves, Figure)
    norms, mass, _, cosines, coherence = curves.panels
    assert norms.lines[0].values[0] == pytest.approx(math.sqrt(18.0))
    # |generator|² = 18, |aggregator|² = 4.
    assert mass.title == "Share of gradient mass, generator"
    assert mass.lines[0].values[0] == pytest.approx(18 / 22)
    assert [line.label for line in cosines.lines] == ["generator · aggregator"]
    assert cosines.lines[0].values[0] == pytest.approx(-2 / math.sqrt(18 * 4))
    assert coherence.lines[0].values[0] == pytest.approx(math.sqrt(18 / 12))
    assert coherence.lines[1].label == "ceiling √3"


def test_without_gradients_there_is_a_note(healthy: JudgedRun) -> None:
    blocks = gradients.build(healthy).blocks
    assert [block.kind for block in blocks] == ["note"]


def records(**closing: object) -> list[StepRecord]:
    own = replace(gram(np.eye(3)), **closing)
    return [StepRecord(step=step, gradients=(own,)) for step in range(3)]


def test_it_says_how_much_of_the_gradient_the_parts_are() -> None:
    assert gradients.closure([StepRecord(step=0)]) == ""
    assert "not checked" in gradients.closure(records())
    some = gradients.closure([*records(), *records(covered=0.98, closure=0.001)])
    assert "In 3 of 6 records" in some
    said = gradients.closure(records(covered=0.98, closure=0.001, bypassed=("lm_head",)))
    assert "cover 98 % of the gradient's norm" in said
    assert "within 0.1 %" in said
    assert "past its layer: lm_head" in said


def test_refused_records_are_named_with_their_reason(healthy: JudgedRun) -> None:
    fault = "role gradients of shared refused: the parts do not add up to .grad"
    refused = [StepRecord(step=step, faults={fault: 1}) for step in range(3)]
    (note,) = gradients.build(replace(healthy, records=tuple(refused))).blocks
    assert "shared refused: the parts do not add up to .grad (3 times)" in note.text
