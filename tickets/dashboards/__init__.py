"""Show what the aggregates say, and let an owner verify it.

May import `desk`, `counting` and below. Begin with `dashboard.py`.
"""
