"""Does the monitor find what is wrong, name it rightly, and leave healthy runs alone?

``suite.toml`` says which runs there are, ``training.py`` trains them, ``recordings/`` holds what
the monitor wrote about them, and ``python -m benchmarks.detection`` replays that and judges it.
"""
