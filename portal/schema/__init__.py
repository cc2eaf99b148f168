"""Declare keys, tables and rights; every other room builds on it, and it imports none.

Begin with `keys.py`, the one place that can form a key. A room declares its own in its `keys.py` and `tables.py`, and
`registry.py` collects them.
"""
