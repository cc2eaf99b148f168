"""Define what a ticket is: its words and limits, its keys, its stored items.

May import the kernel only. Begin with `fields.py`.
"""
