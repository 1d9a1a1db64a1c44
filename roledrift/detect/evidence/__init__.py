"""The evidence engine: one process per stream, scale-free, with one false-alert budget per run."""
