"""Charts: what is on a page as SVG and what is in a picture, drawn alike."""
