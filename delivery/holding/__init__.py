"""Let one tenant's deliveries wait, drain or drop, while all others go on.

Begin with `holds.py` (what a hold says of an event), then `hold_changes.py` (an operator's acts) and `hold_keeper.py`
(what they mean for the rows that are there).
"""
