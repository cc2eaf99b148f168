"""Work with tickets: create, change, comment, change many at once, list, filter.

Begin with `changing.py` for one ticket and `lists.py` for many; whatever changes a ticket writes it by
`summaries.revise`.
"""
