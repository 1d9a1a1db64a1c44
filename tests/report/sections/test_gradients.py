from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roledrift.records import GramRecord, StepRecord
from roledrift.report.model import Figure, Heat, Prose
from roledrift.report.sections import gradients
from roledrift.report.view import View

LABELS = ("generator/0", "generator/1", "aggregator")


def gram(vectors: np.ndarray) -> GramRecord:
    products = vectors @ vectors.T
    return GramRecord("shared", LABELS, tuple(tuple(row) for row in products.tolist()))


@given(st.integers(0, 2**32 - 1))
def test_the_gram_of_roles_is_that_of_the_summed_slots(seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(3, 5))
    roles = np.stack([vectors[0] + vectors[1], vectors[2]])
    whole = gradients.by_role(gram(vectors))
    assert whole.labels == ("generator", "aggregator")
    np.testing.assert_allclose(whole.products, roles @ roles.T, atol=1e-12)


def test_coherence_is_one_for_orthogonal_and_root_n_for_identical_slots() -> None:
    orthogonal = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    identical = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    opposed = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])
    assert gradients.coherence(gram(orthogonal)) == {"generator": pytest.approx(1.0)}
    assert gradients.coherence(gram(identical)) == {"generator": pytest.approx(math.sqrt(2))}
    assert gradients.coherence(gram(opposed)) == {"generator": 0.0}


def test_the_section_states_the_method_and_its_error(failing: View) -> None:
    method, norms, mass, cosines, coherence = gradients.build(failing).blocks
    assert isinstance(method, Prose)
    assert (
        "folded (random projections of the gradients), relative standard error of a norm 0.8 %"
        in method.text
    )
    assert isinstance(norms, Figure)
    assert norms.panels[0].lines[0].values[0] == pytest.approx(math.sqrt(18.0))
    assert isinstance(mass, Figure)
    # |generator|² = 18, |aggregator|² = 4.
    assert mass.panels[0].lines[0].values[0] == pytest.approx(18 / 22)
    assert isinstance(cosines, Heat)
    assert cosines.labels == ("generator · aggregator",)
    assert cosines.values[0][0] == pytest.approx(-2 / math.sqrt(18 * 4))
    assert isinstance(coherence, Figure)
    assert coherence.panels[0].lines[0].values[0] == pytest.approx(math.sqrt(18 / 12))
    assert coherence.panels[0].lines[1].label == "ceiling √3"


def test_without_gradients_there_is_a_note(healthy: View) -> None:
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


def test_refused_records_are_named_with_their_reason(healthy: View) -> None:
    fault = "role gradients of shared refused: the parts do not add up to .grad"
    refused = [StepRecord(step=step, faults={fault: 1}) for step in range(3)]
    (note,) = gradients.build(replace(healthy, records=tuple(refused))).blocks
    assert "shared refused: the parts do not add up to .grad (3 times)" in note.text
