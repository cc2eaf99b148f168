"""Merge a ticket into another one, and take that back.

Begin with `ticket_merging.py`. The module tickets/desk/timelines.py sorts the entries of merged tickets into the
history of the other one.
"""
