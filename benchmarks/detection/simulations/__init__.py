"""Simulated runs: false-alarm rates under noise, and the cells of the paper at real scale."""
