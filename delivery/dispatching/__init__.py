"""Bring what the outbox holds to the queues.

Begin with `sender.py`, which says when a message goes and to which queue.
"""
