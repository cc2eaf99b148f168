"""Define what a ticket is: its words and limits, its keys, its stored items, and what is told of it.

Begin with `fields.py`.
"""
