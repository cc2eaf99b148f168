"""Checklists in descriptions and comments, whose items are ticked by a click.

Begin with `ticking.py`. The module tickets/ticket/checklists.py says what an item is.
"""
