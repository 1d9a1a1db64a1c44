"""Readers of logs that few users have: ``roledrift.importers`` entry points of this project."""
