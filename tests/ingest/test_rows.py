import numpy as np
import pytest

from roledrift.ingest.rows import floats, pair


def test_the_golden_vectors_of_the_papers_code() -> None:
    one = pair("rollout", [-0.1, -0.5, -2.0], [-0.2, -0.4, -1.5])
    two = pair("rollout", [-0.3, -0.05], [-0.3, -0.1])
    tokens = one.tokens + two.tokens
    assert tokens == 5
    assert (one.chi2 + two.chi2) / tokens == pytest.approx(-0.0973632, abs=1e-6)
    assert (one.k3 + two.k3) / tokens == pytest.approx(0.0235620, abs=1e-6)
    assert (one.b + two.b - one.a - two.a) / tokens == pytest.approx(0.09, abs=1e-6)
    assert one.peak == pytest.approx(0.5)


def test_tokens_without_both_sides_are_left_out() -> None:
    one = pair("old", [-1.0, np.nan, -np.inf], [-1.0, -1.0, -1.0])
    assert (one.tokens, one.a, one.k3) == (1, -1.0, 0.0)
    assert pair("old", [], []).peak == 0


def test_lists_of_numbers() -> None:
    found = floats([1, None, 2.5])
    assert found is not None
    assert np.isnan(found[1])
    for odd in ("123", [[1], [2]], ["x"], None, [10**400], {"a": 1}):
        assert floats(odd) is None
