"""Readers of the logs of trackers and trainers: ``roledrift.importers`` entry points of this project."""
