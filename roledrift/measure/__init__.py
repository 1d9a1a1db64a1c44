"""Span rows to sums: what is measured, and at which price class.

A probe is a module here that exports ``CARDS``, or an object handed to the monitor directly.
"""
