"""Formulas on inner products of role gradients: norms, cosines, shares, coherence.

Norms of parts do not add up to the norm of a sum, so everything here starts from the full matrix
``K[i, j] = <g_i, g_j>`` of a :class:`roledrift.records.GramRecord`. With a folded record, numbers
carry its stated error. Groups are named by label; a label is a role or ``role/slot``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from roledrift.errors import ConfigError
from roledrift.records import GramRecord


def matrix(record: GramRecord, labels: Sequence[str] | None = None) -> NDArray[np.float64]:
    """Return the inner products of the named groups, ``(G, G)``; of all groups by default.

    Raises:
        ConfigError: For a label that the record lacks.
    """
    products = np.asarray(record.products, dtype=np.float64)
    if labels is None:
        return products.reshape(len(record.labels), len(record.labels))
    missing = [label for label in labels if label not in record.labels]
    if missing:
        raise ConfigError(f"the record has no groups {missing}; it has {list(record.labels)}")
    where = [record.labels.index(label) for label in labels]
    return products[np.ix_(where, where)]


def by_role(record: GramRecord) -> GramRecord:
    """Add the gradients of slots up to roles: exact, since gradients add.

    A sum over slots needs no gradient: ``<sum_i g_i, sum_j g_j>`` is the sum of the block of inner
    products. The error stated for a norm holds for the sum as well: a fold is linear.
    """
    roles = tuple(dict.fromkeys(label.partition("/")[0] for label in record.labels))
    members = np.array(
        [[label.partition("/")[0] == role for label in record.labels] for role in roles],
        dtype=np.float64,
    )
    products = members @ matrix(record) @ members.T
    return replace(record, labels=roles, products=tuple(tuple(row) for row in products.tolist()))


def slots_of(record: GramRecord) -> dict[str, tuple[str, ...]]:
    """Return the labels of each role's slots, or the role's own label."""
    slots: dict[str, tuple[str, ...]] = {}
    for label in record.labels:
        role = label.partition("/")[0]
        slots[role] = (*slots.get(role, ()), label)
    return slots


def norms(record: GramRecord) -> NDArray[np.float64]:
    """``||g_i||``, ``(G,)``; a square that rounding made negative counts as 0."""
    lengths: NDArray[np.float64] = np.sqrt(np.maximum(np.diag(matrix(record)), 0.0))
    return lengths


def total_norm(record: GramRecord) -> float:
    """``||sum_i g_i||``: the norm that a trainer clips."""
    return float(np.sqrt(max(matrix(record).sum(), 0.0)))


def cosines(record: GramRecord) -> NDArray[np.float64]:
    """``<g_i, g_j> / (||g_i|| ||g_j||)``, ``(G, G)``; NaN where a gradient is zero."""
    lengths = norms(record)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine: NDArray[np.float64] = matrix(record) / np.outer(lengths, lengths)
    return np.clip(cosine, -1.0, 1.0)


def mass_shares(record: GramRecord) -> NDArray[np.float64]:
    """``||g_i||^2 / sum_j ||g_j||^2``, ``(G,)``: adds to one, never negative."""
    squares = np.diag(matrix(record))
    with np.errstate(invalid="ignore"):
        shares: NDArray[np.float64] = squares / squares.sum()
    return shares


def coherence(record: GramRecord, labels: Sequence[str] | None = None) -> float:
    """``||sum_i g_i|| / (sqrt(N) rms_i ||g_i||)`` of N groups.

    1 for orthogonal gradients (independent noise), sqrt(N) for identical ones, 0 if they cancel.
    NaN if all are zero.
    """
    products = matrix(record, labels)
    mass = float(np.trace(products))
    return float(np.sqrt(max(products.sum(), 0.0) / mass)) if mass > 0 else float("nan")
