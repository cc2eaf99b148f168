"""Tell the systems of a tenant what happens on its desk: endpoints, signed deliveries, and a log of each.

Begin with `endpoints.py` (what admins set up), then `delivering.py` (how an event is sent) and `safe_client.py` (where
it may go).
"""
