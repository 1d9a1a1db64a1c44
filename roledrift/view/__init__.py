"""The local live page: a small server that only reads, and a page that asks it."""
