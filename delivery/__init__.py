"""Send what leaves the desk, and let none of it slow the desk down: webhooks and mail.

From the bottom: `events` (what can be told), `outbox` (what is to be told, written with the change that it tells of).
"""
