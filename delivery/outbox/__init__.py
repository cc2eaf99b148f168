"""Keep what is published in the transaction that changes it, and what became of each delivery.

Begin with `publisher.py` (types of events, and a row for each change), then `outbox_rows.py`.
"""
