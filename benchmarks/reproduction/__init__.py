"""The reproduction of arXiv 2605.24202 at tiny scale: a plan, a runner, results, and a page."""
