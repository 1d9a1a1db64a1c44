"""Detectors: from what was measured to what is wrong, in the run's own terms."""

from __future__ import annotations

from collections.abc import Mapping

from roledrift.detect.accuracy_cliff import AccuracyCliff
from roledrift.detect.diversity_collapse import DiversityCollapse
from roledrift.detect.echo_trap import EchoTrap
from roledrift.detect.entropy_collapse import EntropyCollapse
from roledrift.detect.gradient_amplification import GradientAmplification
from roledrift.detect.hygiene import Hygiene
from roledrift.detect.lazy_role import LazyRole
from roledrift.detect.length_inflation import LengthInflation
from roledrift.detect.policy_drift import PolicyDrift
from roledrift.detect.sp_role_capture import SpRoleCapture
from roledrift.protocols import DetectorFactory

DETECTORS: Mapping[str, DetectorFactory] = {
    "hygiene": Hygiene,
    "length_inflation": LengthInflation,
    "sp_role_capture": SpRoleCapture,
    "gradient_amplification": GradientAmplification,
    "policy_drift": PolicyDrift,
    "accuracy_cliff": AccuracyCliff,
    "entropy_collapse": EntropyCollapse,
    "diversity_collapse": DiversityCollapse,
    "lazy_role": LazyRole,
    "echo_trap": EchoTrap,
}
"""Every detector by name; a new one is shaped like ``protocols.Detector`` and has a line here."""
