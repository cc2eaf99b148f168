"""Work with tickets: create, change, comment, close many at once, list, filter, hand over.

May import `counting`, `ticket` and tenants. Begin with `lifecycle.py` for one ticket, `lists.py` for many.
"""
