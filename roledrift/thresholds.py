"""What every detector can be told: one section each of ``roledrift.toml``, under ``detectors``."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LengthInflationConfig:
    """When a role's answers have grown.

    Attributes:
        roles: Roles watched; empty means the terse roles of the workflow, else all roles.
        watch_ratio: Length over baseline at which the role is watched.
        drift_ratio: Length over baseline that is drift once it persists.
        drift_at: An absolute length in tokens that is drift once it persists, whatever the baseline
            was and however noisy; 0 has none.
        floor: Tokens by which it must have grown; below, nothing is drift.
        contrast: How many times the other roles' own growth is needed: if all roles grow alike, the
            task or the reward asks for longer answers, and the role is only watched.
        patience: Records in a row at or above ``drift_ratio`` that make it persist.
        reference: Excess per record, in robust standard deviations, that adds no evidence.
        false_alarms: Expected number per 100 healthy records of one role; the evidence that is
            needed (a cumulated log-ratio) is solved from it.
    """

    enabled: bool = True
    roles: tuple[str, ...] = ()
    watch_ratio: float = 1.25
    drift_ratio: float = 1.5
    drift_at: float = 0.0
    floor: float = 2.0
    contrast: float = 1.25
    patience: int = 3
    reference: float = 1.0
    false_alarms: float = 0.04


@dataclass(frozen=True, slots=True)
class RoleCaptureConfig:
    """When a role under a shared policy writes like another role.

    Attributes:
        watch_shift: Share of the way from its own baseline toward the other role's at which it is
            watched (0 = as at the start, 1 = like the other role).
        drift_shift: The share that is drift once it persists.
        noise: Robust standard deviations by which the role's profile must have left its own
            baseline, on average over its features.
        separation: Difference at the start, as a share in [0, 1] (for lengths: of the natural log),
            from which on a feature tells the two roles apart; others are left out.
        patience: Records in a row that make it persist.
        direct: Cosine between the way a role's words have gone and the way to the other role's,
            from which on they go toward that role.
        paid: Correlation of advantage and length within advantage groups from which on (at the
            lower 95 % bound) a role that writes more and like another is called reward hacking.
    """

    enabled: bool = True
    watch_shift: float = 0.25
    drift_shift: float = 0.5
    noise: float = 3.0
    separation: float = 0.3
    patience: int = 2
    direct: float = 0.5
    paid: float = 0.1


@dataclass(frozen=True, slots=True)
class PolicyDriftConfig:
    """When a role's policy moves away from where it was, whatever the cause.

    Attributes:
        drift_ratio: Policy movement over baseline that is drift once it persists.
        floor: Movement per step (k3, nats per token) below which nothing is drift.
        median_of: Records whose median is the movement: single steps of healthy runs are outliers
            by orders of magnitude.
        patience: Records in a row that make it persist.
        reference: Excess per record, in robust standard deviations, that adds no evidence.
        false_alarms: Expected number per 100 healthy records of one role; the evidence that is
            needed (a cumulated log-ratio) is solved from it.
    """

    enabled: bool = True
    drift_ratio: float = 10.0
    floor: float = 0.005
    median_of: int = 7
    patience: int = 3
    reference: float = 1.0
    false_alarms: float = 0.04


@dataclass(frozen=True, slots=True)
class GradientAmplificationConfig:
    """When the role with several slots drifts while the others stay flat.

    Attributes:
        drift_ratio: Policy movement over baseline that is drift once it persists.
        floor: Movement per step (k3, nats per token) below which nothing is drift.
        contrast: How many times the movement of the steadiest other role the name needs.
        median_of: Records whose median is the movement: single steps of healthy runs are outliers
            by orders of magnitude.
        patience: Records in a row that make it persist.
        reference: Excess per record, in robust standard deviations, that adds no evidence.
        false_alarms: Expected number per 100 healthy records of one role; the evidence that is
            needed (a cumulated log-ratio) is solved from it.
        coherence: Coherence of the slots' gradients that the name needs (1 = unrelated, sqrt(slots)
            = identical).
        matched: The name needs this many times the movement that the other role would have with as
            many optimizer steps per iteration, all in one direction.
        excess: Cosine of slots' gradients on the same problems, minus that on different ones, that
            the name needs (and a lower 95 % bound above 0).
        controls: Records with gradients split by problem, since the onset, that the name needs.
    """

    enabled: bool = True
    drift_ratio: float = 5.0
    floor: float = 0.005
    contrast: float = 5.0
    median_of: int = 5
    patience: int = 3
    reference: float = 1.0
    false_alarms: float = 0.04
    coherence: float = 1.2
    matched: float = 1.0
    excess: float = 0.1
    controls: int = 4


@dataclass(frozen=True, slots=True)
class AccuracyCliffConfig:
    """When the workflow solves clearly less than it already did.

    Attributes:
        share: Share of the best accuracy whose loss is a fall.
        floor: Smallest loss that is one.
        noise: Standard deviations of one value that the loss must be, too.
        patience: Values in a row that low; a loss twice as large as needed is told at once.
        block: Records of training that are averaged to one value; validations stand alone.
    """

    enabled: bool = True
    share: float = 0.25
    floor: float = 0.05
    noise: float = 4.0
    patience: int = 2
    block: int = 5


@dataclass(frozen=True, slots=True)
class EntropyCollapseConfig:
    """When a role has become sure of itself without having become better.

    Attributes:
        fall: Baseline over entropy at which the fall counts.
        rest: Share of the baseline that is next to nothing.
        ample: Nats per token above which there is no collapse, whatever the baseline.
        idle: Rise of the share of advantage groups with equal rewards that shows, while the reward
            stands still, that nothing is left to learn from.
        rise: Entropy over baseline at which it explodes.
        floor: Nats per token by which it must have risen.
        patience: Records in a row that make it persist.
    """

    enabled: bool = True
    fall: float = 2.0
    rest: float = 0.2
    ample: float = 0.15
    idle: float = 0.2
    rise: float = 2.0
    floor: float = 0.1
    patience: int = 3


@dataclass(frozen=True, slots=True)
class DiversityCollapseConfig:
    """When the slots of a role have become copies of each other.

    Attributes:
        agreement: Rise of the share of pairs of wrong siblings that give the same wrong answer.
        overlap: Rise of the overlap of words (Jaccard of 3-grams) among wrong siblings.
        openers: Baseline over different openings per text at which their loss counts.
        pool: Pairs of wrong siblings, or episodes with such, that a value must be the mean of.
        patience: Values in a row that make it persist.
    """

    enabled: bool = True
    agreement: float = 0.25
    overlap: float = 0.2
    openers: float = 2.0
    pool: float = 24.0
    patience: int = 3


@dataclass(frozen=True, slots=True)
class LazyRoleConfig:
    """When what a role says has stopped mattering.

    Attributes:
        one_verdict: Share of one verdict from which on a judge is a rubber stamp, if the answers
            that it judges are not as often so.
        copied: Share of a text's words (3-grams) that its input has, from which on it is a copy.
        copied_rise: Rise of that share that is needed, too.
        pool: Outputs that a value must rest on.
        patience: Values in a row that make it persist.
    """

    enabled: bool = True
    one_verdict: float = 0.95
    copied: float = 0.9
    copied_rise: float = 0.2
    pool: float = 24.0
    patience: int = 3


@dataclass(frozen=True, slots=True)
class EchoTrapConfig:
    """When a policy repeats what once paid until nothing is left to learn from.

    Attributes:
        spread: Fall of the standard deviation of rewards within groups (or rise of the share of
            groups with equal rewards) that counts.
        fall: Baseline over entropy at which its fall counts.
        spike: Gradient norm over baseline that is a spike.
        window: Records for which a spike counts.
        patience: Records in a row that make the first two persist.
    """

    enabled: bool = True
    spread: float = 0.15
    fall: float = 2.0
    spike: float = 4.0
    window: int = 16
    patience: int = 3


@dataclass(frozen=True, slots=True)
class HygieneConfig:
    """When what is recorded is not what it should be.

    Attributes:
        duplicates: Share of rows that are there twice.
        stale: Distance (k3) of the ratio's denominator while no optimizer step lies between, and
            of the rollouts beyond what the policy's own steps account for.
        moved: Distance (k3) from the base model from which on the rollouts' distance is compared.
        truncated: Share of answers cut by the length limit.
        signal: Share of advantage groups with equal rewards, while the reward has not risen.
        patience: Records in a row that make it a finding.
    """

    enabled: bool = True
    duplicates: float = 0.01
    stale: float = 0.001
    moved: float = 0.01
    truncated: float = 0.1
    signal: float = 0.98
    patience: int = 3


@dataclass(frozen=True, slots=True)
class DetectorsConfig:
    """One section per detector."""

    length_inflation: LengthInflationConfig = field(default_factory=LengthInflationConfig)
    sp_role_capture: RoleCaptureConfig = field(default_factory=RoleCaptureConfig)
    gradient_amplification: GradientAmplificationConfig = field(
        default_factory=GradientAmplificationConfig
    )
    policy_drift: PolicyDriftConfig = field(default_factory=PolicyDriftConfig)
    accuracy_cliff: AccuracyCliffConfig = field(default_factory=AccuracyCliffConfig)
    entropy_collapse: EntropyCollapseConfig = field(default_factory=EntropyCollapseConfig)
    diversity_collapse: DiversityCollapseConfig = field(default_factory=DiversityCollapseConfig)
    lazy_role: LazyRoleConfig = field(default_factory=LazyRoleConfig)
    echo_trap: EchoTrapConfig = field(default_factory=EchoTrapConfig)
    hygiene: HygieneConfig = field(default_factory=HygieneConfig)
