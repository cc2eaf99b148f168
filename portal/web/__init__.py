"""Serve what every page shares: middleware, error pages, Markdown, and what keeps typed text from being lost.

Begin with `access.py` (who may open a page), then `middleware.py` (what surrounds each request).
"""
