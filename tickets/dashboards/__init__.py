"""Show what the aggregates say, and let an owner verify it.

Begin with `dashboard.py`.
"""
