"""The workflows of arXiv 2605.24202 in verl: agent loops, data and configurations."""
