"""Serve what every page shares: middleware, error pages, Markdown, and what keeps typed text from being lost."""
