"""Pages of requesters, who come by a signed link from a letter: one ticket to read, answer, close and rate.

Begin with `requester_page.py`, which says whom a link lets in; tickets/replies/ticket_links.py signs the links.
"""
