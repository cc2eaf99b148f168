"""Move what a desk holds from one place to another while people go on working.

Begin with `tenant_mover.py` (the steps of a move), then `ticket_copies.py` (how a ticket gets there) and
`write_hold.py` (how writes wait for the switch).
"""
