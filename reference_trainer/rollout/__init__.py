"""From problems to episodes: the engine samples tokens, the player turns them into episodes."""
