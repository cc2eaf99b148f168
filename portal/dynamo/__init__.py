"""Reach items: clients, the tenant's repository, the platform's exception, cursors, and the meter that counts costs.

Begin with `store.py`.
"""
