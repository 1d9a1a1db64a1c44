"""Texts that models wrote: which are shown, how two are compared, what a page carries of all."""
