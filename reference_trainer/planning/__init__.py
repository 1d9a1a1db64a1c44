"""What a run will need: memory by part, tokens and time per iteration, and whether it fits."""
