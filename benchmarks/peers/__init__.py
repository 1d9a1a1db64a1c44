"""Other monitors for RL training of language models, on the same logs as roledrift."""
