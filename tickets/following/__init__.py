"""Follow the tickets' stream on both of its hosts: what is written is indexed for the search, then counted.

May import `search`, `counting`, `sharding` and the kernel. Begin with `ticket_stream.py`.
"""
