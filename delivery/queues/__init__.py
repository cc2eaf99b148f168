"""Give each tenant four of the queues, choose among them, and carry messages.

Begin with `queue_sets.py`, which says which four; `queue_transport.py` is the way to Amazon SQS.
"""
