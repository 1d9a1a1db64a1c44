"""Span rows to sums: what is measured, and at which price class.

A probe of your own is one more line in :data:`PROBES`, or handed to the monitor directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roledrift.config import Tier
from roledrift.measure import advantages, lengths, policy, shape, siblings, wording
from roledrift.protocols import Probe
from roledrift.workflow import Workflow

PROBES: Mapping[str, Callable[[Workflow], Probe]] = {
    "lengths": lengths.lengths,
    "truncation": lengths.truncation,
    "chars": lengths.chars,
    "rewards": advantages.rewards,
    "advantages": advantages.advantages,
    "credit": advantages.credit,
    "zero_variance": advantages.zero_variance,
    "length_credit": advantages.LengthCredit,
    "perplexity": policy.perplexity,
    "entropy": policy.entropy,
    "clipping": policy.clipping,
    "nonfinite": policy.nonfinite,
    "comparisons": policy.comparisons,
    "shape": shape.shape,
    "openers": wording.openers,
    "words": wording.Words,
    "copied": wording.copied,
    "sign_agreement": siblings.sign_agreement,
    "sibling_jaccard": siblings.sibling_jaccard,
    "wrong_agreement": siblings.wrong_agreement,
}
"""Every probe that ships, by name."""

_READ_TEXT = frozenset(
    {"chars", "shape", "openers", "words", "copied", "sibling_jaccard", "wrong_agreement"}
)
_OF_SIBLINGS = frozenset({"sign_agreement", "sibling_jaccard", "wrong_agreement"})


def probes_for(tier: Tier, workflow: Workflow) -> tuple[Probe, ...]:
    """The probes of a tier: ``economy`` leaves out those that read text.

    Those that say nothing about the workflow are left out too: probes of siblings where every role
    has one slot, ``copied`` where nobody reads what others have solved.
    """
    left_out: set[str] = set()
    if tier == "economy":
        left_out |= _READ_TEXT
    if all(role.slots < 2 for role in workflow.roles):
        left_out |= _OF_SIBLINGS
    if not wording.copies(workflow):
        left_out.add("copied")
    return tuple(make(workflow) for name, make in PROBES.items() if name not in left_out)
