"""Look after a tenant's index: say how it stands, hold it against the stored texts, and make it anew.

Begin with `index_check.py`; `index_rebuild.py` repairs, rolls out a new version of the tokenizer, and erases.
"""
