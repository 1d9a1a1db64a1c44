"""``python -m roledrift``: the same as the command ``roledrift``."""

from roledrift.cli.main import run

run()
