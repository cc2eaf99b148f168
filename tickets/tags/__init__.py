"""The tags of a desk: their counts and colours, suggestions while somebody types, and changes across all tickets.

Begin with `desk_tags.py`.
"""
