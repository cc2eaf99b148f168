"""Send what leaves the desk, and let none of it slow the desk down: webhooks and mail.

Begin with `outbox/items.py` (what is to be told, written with the change that it tells of), then
`dispatching/dispatcher.py` and `consuming/slots.py`. All rooms are in docs/architecture.md.
"""
