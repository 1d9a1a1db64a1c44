"""Readers of logs of trackers and trainers: ``roledrift.importers`` entry points we bring."""
