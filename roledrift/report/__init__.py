"""The report on a run: one value, rendered as a web page, Markdown, JSON, tables or pictures."""

FORMATS = ("html", "md", "json", "csv", "tex", "png", "status")
"""What a report can be written as."""
