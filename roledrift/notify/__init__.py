"""Send alerts to a person or another program."""
