"""The monitor: makes records, verdicts and alerts of a training, and a run directory."""
