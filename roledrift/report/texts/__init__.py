"""Texts that models wrote: which ones to show, how to compare two, what a page holds of all."""
