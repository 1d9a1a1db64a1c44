"""The sections of a run's report: one module each, one function from a run to a section."""
