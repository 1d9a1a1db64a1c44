"""The monitor: what a training hands over becomes records, verdicts, alerts and a run directory."""
