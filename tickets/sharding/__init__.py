"""Change over how many partitions a tenant's tickets are spread, while people go on working.

Begin with `reshard_job.py` (the steps of a resharding), then `shard_rows.py`
(how a ticket is moved).
"""
