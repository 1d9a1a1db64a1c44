"""Detectors: from what was measured to what is wrong, in the run's own terms."""
