"""Span rows to sums: what is measured, and at which price class.

A probe of your own is one more line in :data:`PROBES`, or handed to the monitor directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roledrift.config import Tier
from roledrift.measure import advantages, lengths, policy, shape
from roledrift.protocols import Probe
from roledrift.workflow import Workflow

PROBES: Mapping[str, Callable[[Workflow], Probe]] = {
    "lengths": lengths.lengths,
    "truncation": lengths.truncation,
    "chars": lengths.chars,
    "rewards": advantages.rewards,
    "advantages": advantages.advantages,
    "zero_variance": advantages.zero_variance,
    "perplexity": policy.perplexity,
    "entropy": policy.entropy,
    "clipping": policy.clipping,
    "nonfinite": policy.nonfinite,
    "comparisons": policy.comparisons,
    "shape": shape.shape,
}
"""Every probe that ships, by name."""

_READ_TEXT = frozenset({"chars", "shape"})


def probes_for(tier: Tier, workflow: Workflow) -> tuple[Probe, ...]:
    """The probes of a tier: ``economy`` leaves out those that read text."""
    return tuple(
        make(workflow)
        for name, make in PROBES.items()
        if tier != "economy" or name not in _READ_TEXT
    )
