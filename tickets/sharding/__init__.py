"""Change over how many partitions a tenant's tickets are spread, while people go on working.

Begin with `mover.py` (the steps of a resharding), then `layout_changes.py` (what others are told) and `shard_rows.py`
(how a ticket is moved).
"""
