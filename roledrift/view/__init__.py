"""The live page: a small local server that only reads, and the page that it serves."""
