"""Recount a tenant's tickets, hold the aggregates against the result, and make them right again.

May import `counting`, `ticket` and the kernel. Begin with `verify.py`; `rebuild.py` repairs while people go on working.
"""
