"""Formats for the one language that there is."""
