"""Span rows to sums: what is measured, and at which price class.

A probe of your own is one more line in :data:`PROBES`, or handed to the monitor directly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from roledrift.config import Tier
from roledrift.measure import (
    advantages,
    duplicates,
    lengths,
    policy,
    shape,
    siblings,
    verdicts,
    wording,
)
from roledrift.protocols import Probe
from roledrift.workflow import Workflow

PROBES: Mapping[str, Callable[[Workflow], Probe]] = {
    "lengths": lengths.lengths,
    "truncation": lengths.truncation,
    "duplicates": duplicates.duplicates,
    "chars": lengths.chars,
    "rewards": advantages.rewards,
    "advantages": advantages.advantages,
    "credit": advantages.credit,
    "zero_variance": advantages.zero_variance,
    "length_credit": advantages.length_credit,
    "reward_spread": advantages.reward_spread,
    "perplexity": policy.perplexity,
    "entropy": policy.entropy,
    "clipping": policy.clipping,
    "nonfinite": policy.nonfinite,
    "comparisons": policy.comparisons,
    "shape": shape.shape,
    "verdicts": verdicts.verdicts,
    "openers": wording.openers,
    "words": wording.Words,
    "copied": wording.copied,
    "sign_agreement": siblings.sign_agreement,
    "sibling_jaccard": siblings.sibling_jaccard,
    "wrong_agreement": siblings.wrong_agreement,
    "wrong_jaccard": siblings.wrong_jaccard,
}
"""Every probe that ships, by name."""

_AGREEMENT = frozenset({"sibling_jaccard", "wrong_agreement", "wrong_jaccard"})
_READ_TEXT = _AGREEMENT | {"chars", "shape", "verdicts", "openers", "words", "copied"}
_OF_SIBLINGS = _AGREEMENT | {"sign_agreement"}


def probes_for(tier: Tier, workflow: Workflow) -> tuple[Probe, ...]:
    """The probes of a tier: ``economy`` leaves out those that read text.

    Those that say nothing about the workflow are left out too: probes of siblings where every role
    has one slot, ``copied`` where nobody reads what others have solved, ``verdicts`` where nobody
    judges.
    """
    left_out: set[str] = set()
    if tier == "economy":
        left_out |= _READ_TEXT
    if all(role.slots < 2 for role in workflow.roles):
        left_out |= _OF_SIBLINGS
    if not wording.copies(workflow):
        left_out.add("copied")
    if all(role.duty != "judge" for role in workflow.roles):
        left_out.add("verdicts")
    return tuple(make(workflow) for name, make in PROBES.items() if name not in left_out)
