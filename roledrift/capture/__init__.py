"""Tensors of a running trainer to span rows and Gram matrices: the only part that imports torch."""
