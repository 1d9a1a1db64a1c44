"""The report: one value, rendered as a self-contained page, as Markdown and as JSON."""

FORMATS = ("html", "md", "json", "csv", "tex", "png", "status")
"""What a report can be written as."""
