"""Groups of agents: their members, who of them is away, and who of a group gets a ticket.

Begin with `group_changes.py`, which makes, changes and deletes groups. Their names and ways of assignment stand in the
desk's setup: tickets/desk_setup/setup.py.
"""
