"""Recorded runs for notebooks and scripts: objects to ask, and tidy pandas frames."""
