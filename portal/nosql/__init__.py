"""Let Django run without a relational database: backend, sessions, models over items, the admin.

Begin with `planner/patterns.py` (how items can be read), then `admin/options.py`.
"""
