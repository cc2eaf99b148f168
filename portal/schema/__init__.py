"""Declare keys, tables and rights; every other package builds on it, and it imports none.

Begin with `keys.py`, the one place that can form a key. A package declares its own beside
its tables, and `registry.py` collects them.
"""
