"""Probes that say little: what the tests of the monitor measure with."""

from roledrift.spans import SpanTable
from roledrift.sums import Key, Moments, Sums


class Lengths:
    name = "lengths"
    needs = frozenset({"tokens_N"})

    def measure(self, spans: SpanTable) -> Sums:
        assert spans.tokens_N is not None
        return {
            Key(role, "length"): Moments.of(spans.tokens_N[rows]) for role, rows in spans.by_role()
        }


class Rewards:
    name = "rewards"
    needs = frozenset({"reward_N"})

    def measure(self, spans: SpanTable) -> Sums:
        raise AssertionError("must not be called without its column")
