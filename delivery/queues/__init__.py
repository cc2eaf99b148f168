"""Bring the outbox to the queues, and deliver what the queues bring, so that no tenant takes more than its share.

Begin with `dispatcher.py` (outbox to queues), `consumer.py` and `message_handling.py` (queues to destinations), and
`limits.py` (how much of one tenant at once). `queue_sets.py` says which four queues a tenant has.
"""
