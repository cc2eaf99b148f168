"""Follow the tickets' stream on both of its hosts: what is written is indexed for the search, then counted.

Begin with `ticket_stream.py`.
"""
