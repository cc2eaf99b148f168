"""Show tickets as they were at a time, from their history alone, and restore them.

Begin with `past_tickets.py`; `restoring.py` makes the past present again.
"""
