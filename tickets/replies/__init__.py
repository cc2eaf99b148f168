"""Send public comments to requesters outside the desk, by mail, and show on the ticket how each letter fared.

Begin with `reply_addresses.py` and `message_ids.py`, which tie an answer to its ticket.
"""
