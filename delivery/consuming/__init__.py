"""Deliver what the queues bring, so that no tenant takes more of a worker than its share.

Begin with `slots.py`, which says what may begin now; `delivery.queues.worker_assignment` says who serves which queue.
"""
