"""Statistics that compare a role with all roles: derived once, from the step's finished sums.

They are no sums themselves (a share has no share to be added to), so no probe measures them; they
follow from what the probes have summed over all micro-batches and ranks.
"""

from __future__ import annotations

from roledrift.sums import EVERYONE, Distinct, Key, Mean, Moments, Sums

SHARES = {"length": "token_share", "credit": "credit_share"}
"""Statistics whose totals are shared out among the roles: tokens, and ``|advantage|`` per token."""


def relative(sums: Sums) -> Sums:
    """What each role and slot is relative to all roles together.

    ==================== ==========================================================================
    ``token_share``      its share of all trainable tokens
    ``credit_share``     its share of the credit mass, the sum over tokens of ``|A|``
    ``reward_bias``      its mean reward minus the mean reward of all spans
    ``advantage_bias``   ``b_k``, its mean advantage, over its standard deviation; away from 0 a
                         pooled baseline pushes the role up or down as a whole
    ``variance_share``   its share of ``sum (A - mean A)²`` over all spans
    ``advantage_between`` of ``"*"``: the share of that sum which lies between the roles' means
    ==================== ==========================================================================

    Returns:
        New keys only; a statistic whose denominator is 0 or NaN is left out.
    """
    derived: Sums = {}
    for key, part in sums.items():
        everyone = sums.get(Key(EVERYONE, key.name))
        if key.group == EVERYONE or isinstance(part, Distinct) or isinstance(everyone, Distinct):
            continue
        if everyone is None or not part.n or not everyone.n:
            continue
        if key.name in SHARES and everyone.total > 0:
            derived[Key(key.group, SHARES[key.name])] = Mean(everyone.total, part.total)
        elif key.name == "reward":
            bias = part.total - part.n * (everyone.total / everyone.n)
            derived[Key(key.group, "reward_bias")] = Mean(part.n, bias)
        elif (
            key.name == "advantage" and isinstance(part, Moments) and isinstance(everyone, Moments)
        ):
            derived |= _of_advantage(key.group, part, everyone)
    return derived | _between(sums)


def _of_advantage(group: str, part: Moments, everyone: Moments) -> Sums:
    derived: Sums = {}
    own, every = _spread(part), _spread(everyone)
    if own > 0:
        derived[Key(group, "advantage_bias")] = Mean(part.n, part.total / (own / part.n) ** 0.5)
    if every > 0:
        share = _scatter(part, everyone.total / everyone.n)
        derived[Key(group, "variance_share")] = Mean(every, share)
    return derived


def _between(sums: Sums) -> Sums:
    everyone = sums.get(Key(EVERYONE, "advantage"))
    if not isinstance(everyone, Moments) or not everyone.n:
        return {}
    every = _spread(everyone)
    within = 0.0
    for key, part in sums.items():
        role = key.name == "advantage" and key.group != EVERYONE and "/" not in key.group
        if role and isinstance(part, Moments) and part.n:
            within += _spread(part)
    if not every > 0:
        return {}
    return {Key(EVERYONE, "advantage_between"): Mean(every, max(every - within, 0.0))}


def _spread(part: Moments) -> float:
    """Sum of ``(x - mean x)²``; exactly 0 if all values are the same."""
    return 0.0 if part.low == part.high else _scatter(part, part.total / part.n)


def _scatter(part: Moments, middle: float) -> float:
    """Sum of ``(x - middle)²``."""
    return max(part.square - 2 * middle * part.total + part.n * middle * middle, 0.0)
