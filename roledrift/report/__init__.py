"""The report: one value, rendered as a self-contained page, as Markdown and as JSON."""
