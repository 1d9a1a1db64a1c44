"""Telling a person or another program about alerts."""
