"""Imported last by the process that others are forked from: none looks for garbage in modules."""

import gc

gc.collect()
gc.freeze()
