"""One module per detector; each exports its ``CARD``."""
