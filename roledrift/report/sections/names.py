"""Plain words for what the library calls by short names, and the list of what is drawn."""

from __future__ import annotations

import re
from dataclasses import dataclass

from roledrift.sums import EVERYONE

_STATISTICS = {
    "length": "response length",
    "shift": "shift toward another role",
    "words": "distance of its words from the baseline",
    "val_accuracy": "validation accuracy",
    "accuracy": "accuracy in training",
    "correct": "share of correct answers",
    "copied": "share copied from the input",
    "openers": "different openings",
    "verdict_correct": "share of the verdict “correct”",
    "wrong_agreement": "agreement on wrong answers",
    "wrong_jaccard": "overlap of wrong answers",
    "duplicates": "share of rows that are there twice",
    "updates": "optimizer steps",
    "factor": "learning rate",
    "grad_norm": "gradient norm",
    "lr": "learning rate",
    "policy_movement": "movement of the policy per step",
    "reward_bias": "reward above that of all roles",
    "rollout_gap": "gap between engine and trainer",
    "zero_variance": "groups with equal rewards",
    "rollout.training_ppl": "perplexity under the trainer",
    "old.training_ppl": "perplexity at the start of the iteration",
}


def statistic_name(name: str) -> str:
    """A statistic in words: its title on the page, in the middle of a sentence."""
    for quantity in QUANTITIES:
        if quantity.name == name and name not in _STATISTICS:
            return quantity.title[0].lower() + quantity.title[1:]
    return _STATISTICS.get(name, name.replace("_", " "))


def plain_words(text: str) -> str:
    """``text`` of a detector with arrows, and with words instead of names in the records."""
    text = text.replace(" -> ", " → ")
    for name in (*_STATISTICS, *(quantity.name for quantity in QUANTITIES)):
        if "_" in name or "." in name:
            found = rf"(?<![\w.]){re.escape(name)}(?![\w.])"
            words = statistic_name(name)
            text = re.sub(rf"\A{found}", words[0].upper() + words[1:], text, flags=re.IGNORECASE)
            text = re.sub(found, words, text)
    return text


def role_name(role: str) -> str:
    """The role, or words for all of them together."""
    return "all roles" if role == EVERYONE else role


@dataclass(frozen=True, slots=True)
class Quantity:
    """One statistic that is drawn per role.

    Attributes:
        name: Name in the records; the curve is its mean.
        healthy: What a healthy curve looks like.
        supply: The switch that makes it appear, for the note where it is absent.
        share: True for values in [0, 1].
    """

    name: str
    title: str
    unit: str
    healthy: str
    supply: str
    log: bool = False
    share: bool = False

    def heading(self, lengths: str = "tokens") -> str:
        """Title and unit; of lengths in a run that counts them in something else than tokens."""
        unit = self.unit.replace("tokens", lengths) if self.name == "length" else self.unit
        return f"{self.title}, {unit}"


_COMPARE = "RoleBatch.rescored after the optimizer step ([rescore] rows_per_role above 0)"
_ROLLOUT = "rollout_logp_BT in RoleBatch"
_TEXT = "text in RoleBatch (tier business or full)"

QUANTITIES: tuple[Quantity, ...] = (
    Quantity(
        "length",
        "Response length",
        "tokens, mean",
        "level; a terse role stays at a few tokens",
        "mask_BT in RoleBatch with outputs=True",
    ),
    Quantity(
        "reward",
        "Reward",
        "mean per answer",
        "rises slowly or stays level",
        "reward_B in RoleBatch",
    ),
    Quantity(
        "entropy",
        "Entropy",
        "nats per token",
        "falls slowly; a sudden fall is a policy that collapses, a rise one that dissolves",
        "entropy_BT in RoleBatch",
    ),
    Quantity(
        "ppl", "Perplexity", "mean over answers", "level or slowly falling", "logp_BT in RoleBatch"
    ),
    Quantity(
        "update.k3",
        "Movement per update (k3)",
        "nats per token",
        "level and similar for all roles that share a policy",
        _COMPARE,
        log=True,
    ),
    Quantity(
        "update.chi2",
        "Movement per update (chi²)",
        "per token",
        "level; it reacts to few tokens with large ratios before k3 does",
        _COMPARE,
        log=True,
    ),
    Quantity(
        "rollout.k3",
        "Trainer against rollout engine (k3)",
        "nats per token",
        "small and level",
        _ROLLOUT,
        log=True,
    ),
    Quantity(
        "rollout.chi2",
        "Trainer against rollout engine (chi²)",
        "per token",
        "small and level",
        _ROLLOUT,
        log=True,
    ),
    Quantity(
        "old.k3",
        "Policy against start of iteration (k3)",
        "nats per token",
        "small; exactly 0 when every batch is used once",
        "old_logp_BT in RoleBatch",
        log=True,
    ),
    Quantity(
        "reference.k3",
        "Distance to the reference (k3)",
        "nats per token",
        "grows slowly and bends over",
        "reference_logp_BT in RoleBatch",
        log=True,
    ),
    Quantity(
        "clip_fraction",
        "Clipped tokens",
        "share of tokens",
        "small; 0 when every batch is used once",
        "old_logp_BT and clip in RoleBatch",
        share=True,
    ),
    Quantity(
        "truncated",
        "Truncated answers",
        "share of answers",
        "near 0: a truncated answer cannot be graded",
        "truncated_B in RoleBatch",
        share=True,
    ),
    Quantity(
        "zero_variance",
        "Groups without signal",
        "share of groups with equal rewards",
        "level; near 1 there is nothing left to learn from",
        "group_B and reward_B in RoleBatch",
        share=True,
    ),
    Quantity(
        "terse",
        "Terse answers",
        "share of answers",
        "near 1 for a terse role, near 0 for a role that solves",
        _TEXT,
        share=True,
    ),
    Quantity("boxed", "Boxed answers", "share of answers", "level", _TEXT, share=True),
    Quantity(
        "bare_stamp",
        "Bare stamps",
        "share of answers",
        "level for a terse role, else near 0",
        _TEXT,
        share=True,
    ),
    Quantity(
        "code_fence",
        "Code blocks",
        "share of answers",
        "near 0 for roles that judge or select",
        _TEXT,
        share=True,
    ),
    Quantity(
        "verdict_tag",
        "Verdict tags",
        "share of answers",
        "level for a role that judges",
        _TEXT,
        share=True,
    ),
    Quantity("hedging", "Hedging", "share of answers", "level", _TEXT, share=True),
)
"""In the order of the page."""
