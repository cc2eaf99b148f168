"""Send mail through the outbox and the queues, as webhooks are sent, and learn which addresses it does not reach.

Begin with `outbox_backend.py`, which writes a mail to the outbox, and `mail_delivering.py`, which sends it.
"""
