"""Send what leaves the desk, and let none of it slow the desk down: webhooks and mail.

Begin with `outbox/publisher.py` (a row of the outbox in the transaction of the change), then `queues/dispatcher.py` and
`queues/message_handling.py`. All packages are in docs/architecture.md.
"""
