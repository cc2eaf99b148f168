"""Keep the index that a search asks: immutable segments of blocks, sorted by term, and what is newer than they.

Begin with `postings.py` (which tickets have a term), then `segments.py` (how they lie in the table).
"""
