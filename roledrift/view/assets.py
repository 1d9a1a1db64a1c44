"""The files of the page; all are part of this package, and the page loads nothing else."""

from __future__ import annotations

from importlib.resources import files

from roledrift.report.draw.palette import variables

PAGE = "index.html"
STATIC = (
    "page.js", "texts.js", "charts.js", "source.js", "page.css", "inks.css", "uPlot.iife.min.js",
    "uPlot.min.css",
)  # fmt: skip
"""Everything that the page loads."""


def asset(name: str) -> str:
    """Read a file of the page; ``inks.css`` is generated from the colours of the report."""
    if name == "inks.css":
        light, dark = variables(dark=False), variables(dark=True)
        return f":root{{{light}}}\n@media (prefers-color-scheme: dark){{:root{{{dark}}}}}\n"
    return (files("roledrift.view") / "static" / name).read_text(encoding="utf-8")
