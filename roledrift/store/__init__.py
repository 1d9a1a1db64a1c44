"""The run directory, format v1: written by :mod:`.writer`, read by :mod:`.reader`."""
