"""Recount a tenant's tickets, hold the aggregates against the result, and make them right again.

Begin with `verify.py`; `rebuild.py` repairs while people go on working.
"""
