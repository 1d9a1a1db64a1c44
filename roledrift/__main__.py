"""``python -m roledrift``: the same as the command ``roledrift``."""

from roledrift.cli.main import run

if __name__ == "__main__":  # a process that the view starts imports this file
    run()
