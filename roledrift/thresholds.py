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
    false_alarms: float = 0.01


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
    """

    enabled: bool = True
    watch_shift: float = 0.25
    drift_shift: float = 0.5
    noise: float = 3.0
    separation: float = 0.3
    patience: int = 2


@dataclass(frozen=True, slots=True)
class GradientAmplificationConfig:
    """When the role with several slots drifts while the others stay flat.

    Attributes:
        drift_ratio: Policy movement over baseline that is drift once it persists.
        floor: Movement per step (k3, nats per token) below which nothing is drift.
        contrast: How many times the movement of the steadiest other role is needed.
        median_of: Records whose median is the movement: single steps of healthy runs are outliers
            by orders of magnitude.
        patience: Records in a row that make it persist.
        reference: Excess per record, in robust standard deviations, that adds no evidence.
        false_alarms: Expected number per 100 healthy records of one role; the evidence that is
            needed (a cumulated log-ratio) is solved from it.
        coherence: Coherence of the slots' gradients (1 = unrelated, sqrt(slots) = identical) from
            which on the drift is called gradient amplification.
    """

    enabled: bool = True
    drift_ratio: float = 5.0
    floor: float = 0.005
    contrast: float = 5.0
    median_of: int = 5
    patience: int = 3
    reference: float = 1.0
    false_alarms: float = 0.01
    coherence: float = 1.2


@dataclass(frozen=True, slots=True)
class DetectorsConfig:
    """One section per detector."""

    length_inflation: LengthInflationConfig = field(default_factory=LengthInflationConfig)
    sp_role_capture: RoleCaptureConfig = field(default_factory=RoleCaptureConfig)
    gradient_amplification: GradientAmplificationConfig = field(
        default_factory=GradientAmplificationConfig
    )
