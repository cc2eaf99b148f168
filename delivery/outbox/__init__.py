"""Keep what is published in the transaction that changes it, and what became of each delivery.

Begin with `event_types.py` (what can be published), `publisher.py` (a row for each change), `outbox_rows.py`.
"""
