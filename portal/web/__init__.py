"""Serve what every page shares: middleware, error pages, Markdown, and what keeps typed text from being lost.

Begin with `access.py` (who may open a page), then `middleware.py` and `error_pages.py` (what surrounds each request).
"""
