"""Carry long work on a tenant out under a lease, so that one process does it and another goes on after a kill.

Resharding, moves, purges and exports are such jobs. Begin with `leased_job.py` (the life of one), then
`job_follower.py` (how a worker finds one).
"""
